/**
 * One collection: a driver whose groups wait as lines until a trainer has acknowledged them. Further batches are held back while too many are not.
 *
 * | from | to | by |
 * | --- | --- | --- |
 * | collecting | paused | the trainer |
 * | paused | collecting | the trainer |
 * | collecting, paused | stopping, then stopped | the trainer, shutdown |
 * | collecting | ended | the rows, or the number of batches |
 * | collecting, paused | failed | the driver |
 *
 * Lines that are there stay in every state.
 */
import type { AbortReason, AbortReceipt } from '../../collector/abort/abort-receipt.ts';
import type { CollectorPosition } from '../../collector/group-source.ts';
import { batchLine, groupLine } from '../../collector/output/collected-lines.ts';
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { errorRegistry } from '../../core/error-registry.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import type { Caller } from '../../scheduler/rollout-service.ts';
import type { CollectionState } from '../../wire/api/collection.ts';
import type { ErrorDocument } from '../../wire/api/common.ts';
import { LineBuffer } from './line-buffer.ts';
import type { OpenedCollector } from './open-collector.ts';

export interface CollectionParts {
  readonly id: string;
  readonly owner: Caller;
  readonly collector: OpenedCollector;
  /** null = until the rows end. */
  readonly batches: number | null;
  readonly aheadGroups: number;
  readonly weightVersion: number | null;
  readonly from: CollectorPosition;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What became of it so far. */
export interface CollectionFacts {
  readonly endedAt: Date | null;
  readonly batchesCollected: number;
  readonly groupsCollected: number;
  readonly error: ErrorDocument | null;
  /** Of the abort that ended it; null = none did. */
  readonly receipt: AbortReceipt | null;
}

const transitions: Readonly<Record<CollectionState, readonly CollectionState[]>> = {
  collecting: ['paused', 'stopping', 'ended', 'failed'],
  paused: ['collecting', 'stopping', 'ended', 'failed'],
  stopping: ['stopped'],
  ...{ ended: [], stopped: [], failed: [] },
};

export class Collection {
  readonly id: string;
  readonly owner: Caller;
  readonly lines = new LineBuffer();
  readonly createdAt: Date;
  readonly #parts: CollectionParts;
  readonly #life = new LinkedAbort([]);
  /** What is to go on from when everything up to a line is acknowledged. */
  #positions: { readonly through: number; readonly position: CollectorPosition }[];
  #stopReason: AbortReason = 'stopped';
  #ending: Promise<void> = Promise.resolve();
  #wake = Promise.withResolvers<undefined>();
  #state: CollectionState = 'collecting';
  #facts: CollectionFacts = {
    ...{ endedAt: null, batchesCollected: 0, groupsCollected: 0, error: null, receipt: null },
  };
  #weightVersion: number | null;

  constructor(parts: CollectionParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.owner = parts.owner;
    this.#weightVersion = parts.weightVersion;
    this.createdAt = parts.clock.now();
    this.#positions = [{ through: 0, position: parts.from }];
  }

  /** Called once. */
  start(): void {
    this.lines.onChange(() => this.#ring());
    this.#ending = this.#run();
  }

  get rows(): number {
    return this.#parts.collector.rows;
  }

  get skippedLines(): number {
    return this.#parts.collector.skippedLines;
  }

  get batches(): number | null {
    return this.#parts.batches;
  }

  get state(): CollectionState {
    return this.#state;
  }

  get facts(): CollectionFacts {
    return this.#facts;
  }

  get isOver(): boolean {
    return transitions[this.#state].length === 0;
  }

  /** The trainer's; null = it has named none. */
  get weightVersion(): number | null {
    return this.#weightVersion;
  }

  /** COLLECTION_OVER when it does not collect any more. */
  setWeightVersion(version: number): void {
    this.#assertLive();
    this.#weightVersion = version;
    this.#parts.collector.weightsChanged();
  }

  get position(): CollectorPosition {
    const { acknowledged } = this.lines;
    const known = this.#positions.findLast(({ through }) => through <= acknowledged);
    return known?.position ?? this.#parts.from;
  }

  acknowledge(through: number): void {
    this.lines.acknowledge(through);
    const at = this.#positions.findLastIndex((each) => each.through <= through);
    if (at > 0) this.#positions = this.#positions.slice(at);
  }

  /** Resolves when weights may change. COLLECTION_OVER when it does not collect any more. */
  async pause(): Promise<void> {
    this.#assertLive();
    if (this.#state === 'collecting') this.#move('paused');
    await this.#parts.collector.pause();
  }

  /** COLLECTION_OVER when it does not collect any more. */
  resume(): void {
    this.#assertLive();
    if (this.#state !== 'paused') return;
    this.#parts.collector.resume();
    this.#move('collecting');
  }

  /** Resolves when nothing of it runs any more. Idempotent. */
  async stop(reason: AbortReason): Promise<void> {
    if (this.#state === 'collecting' || this.#state === 'paused') {
      this.#stopReason = reason;
      this.#move('stopping');
      this.#life.abort(
        new RolloutError('CANCELLED', 'the collection is stopped', { phase: 'queue' }),
      );
    }
    await this.#ending;
  }

  #assertLive(): void {
    if (this.#state === 'collecting' || this.#state === 'paused') return;
    throw new RolloutError('COLLECTION_OVER', `the collection ${this.id} is ${this.#state}`, {
      ...{ phase: 'queue', field: 'id' },
      remedy: 'Create another one; the position of this one says where it goes on.',
    });
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { collector, logger, clock } = this.#parts;
    let end: CollectionState = 'ended';
    try {
      await this.#collect();
    } catch (error) {
      end = 'failed';
      if (!this.#life.signal.aborted) this.#fail(error);
    }
    if (this.#state === 'stopping') end = 'stopped';
    try {
      const receipt = await collector.driver.stop(this.#stopReason);
      // An earlier abort was that of a batch, which told of it.
      if (end !== 'ended' && receipt?.reason !== 'batch-full') this.#note({ receipt });
      await collector.close();
    } catch (error) {
      logger.log('error', 'a collection did not end well', {
        ...{ collection: this.id, cause: messageOf(error) },
      });
    }
    // It may have been told to stop while what it was made of was closed.
    if (this.#isStopping()) end = 'stopped';
    this.#note({ endedAt: clock.now() });
    const { error, batchesCollected, groupsCollected } = this.#facts;
    this.#move(end);
    this.lines.add({ type: 'end', ...{ state: end, error } });
    logger.log('info', 'a collection is over', {
      ...{ collection: this.id, state: end, batches: batchesCollected },
      ...{ groups: groupsCollected, error },
    });
  }

  async #collect(): Promise<void> {
    const { collector, batches } = this.#parts;
    const { signal } = this.#life;
    while (batches === null || this.#facts.batchesCollected < batches) {
      await this.#mayBegin();
      const batch = await collector.driver.collect(signal);
      if (batch === null) return;
      const { batchesCollected: index, groupsCollected } = this.#facts;
      this.#note({
        batchesCollected: index + 1,
        groupsCollected: groupsCollected + batch.groups.length,
      });
      for (const group of batch.groups) this.lines.add(groupLine(group, index));
      this.#positions.push({ through: this.lines.newest, position: collector.position() });
      this.lines.add(await batchLine(batch, index));
    }
  }

  /** Waits for the trainer. Rejects when the collection is stopped. */
  async #mayBegin(): Promise<void> {
    const { signal } = this.#life;
    const leave = (): void => this.#ring();
    signal.addEventListener('abort', leave, { once: true });
    try {
      while (
        !signal.aborted &&
        (this.#state === 'paused' || this.lines.unacknowledgedGroups > this.#parts.aheadGroups)
      ) {
        this.#wake = Promise.withResolvers<undefined>();
        await this.#wake.promise;
      }
    } finally {
      signal.removeEventListener('abort', leave);
    }
    signal.throwIfAborted();
  }

  #fail(error: unknown): void {
    const { logger } = this.#parts;
    logger.log('warn', 'a collection failed', { collection: this.id, cause: messageOf(error) });
    const told = isRolloutError(error)
      ? { detail: error.message, code: error.code }
      : { detail: errorRegistry.INTERNAL.summary, code: 'INTERNAL' };
    this.#note({ error: told });
  }

  #note(facts: Partial<CollectionFacts>): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  #isStopping(): boolean {
    return this.#state === 'stopping';
  }

  #move(to: CollectionState): void {
    if (!transitions[this.#state].includes(to))
      throw new Error(`a collection that is ${this.#state} cannot become ${to}`);
    this.#state = to;
    this.#ring();
  }

  #ring(): void {
    this.#wake.resolve(undefined);
  }
}
