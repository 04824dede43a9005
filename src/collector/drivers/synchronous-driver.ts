/**
 * Collects a batch and ends the rest: more groups than needed are started, the first to be complete are the batch, and the abort follows while the batch is
 * already in its caller's hands. The next `collect` begins when that abort is over.
 */
import type { AbortReason, AbortReceipt } from '../abort/abort-receipt.ts';
import { abortPool } from '../abort/abort-sequence.ts';
import type { Batch } from '../batch.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { CollectedGroup } from '../group.ts';
import { GroupPool } from '../pool/group-pool.ts';
import type { GroupResult } from '../pool/live-group.ts';
import { BatchLedger } from '../report/batch-ledger.ts';
import { groupsToStart } from '../submission-scheduler.ts';
import { dropGroup, keepGroup, stalled, surplusGroup, unfinishedGroup } from './batch-results.ts';
import type { CollectorDriver } from './driver.ts';

/** A full batch that nobody has yet. */
export interface GatheredBatch extends Pick<Batch, 'quiet' | 'report'> {
  readonly kept: readonly CollectedGroup[];
}

export class SynchronousDriver implements CollectorDriver {
  readonly #parts: CollectorParts;
  readonly #pool: GroupPool;
  /** Complete groups that an earlier batch had no room for. */
  readonly #shelf: CollectedGroup[] = [];
  #ledger = new BatchLedger();
  #lostInARow = 0;
  /** Too many were lost; what came with them is taken first. */
  #failure: Error | null = null;
  #quiet: Promise<AbortReceipt | null> = Promise.resolve(null);

  constructor(parts: CollectorParts, runName: string) {
    this.#parts = { ...parts, observe: (event) => this.#observe(event, parts) };
    this.#pool = new GroupPool(this.#parts, runName);
  }

  async collect(signal: AbortSignal): Promise<Batch | null> {
    const gathered = await this.gather(signal);
    return gathered === null ? null : this.handOver(gathered);
  }

  /** As `collect`, but the groups stay open in the source: `handOver` comes before the next call, or they are rolled out anew after a restart. */
  async gather(signal: AbortSignal): Promise<GatheredBatch | null> {
    await this.#quiet;
    signal.throwIfAborted();
    const { clock } = this.#parts;
    const beganMs = clock.monotonicMs();
    const ledger = new BatchLedger();
    this.#ledger = ledger;
    this.#pool.gate.open();
    const kept = this.#fromShelf();
    try {
      await this.#fill(kept, signal);
    } catch (error) {
      this.#shelf.push(...kept);
      await this.stop(signal.aborted ? 'stopped' : 'failed');
      throw error;
    }
    ledger.full(clock.monotonicMs() - beganMs);
    this.#quiet = this.#abort('batch-full');
    if (kept.length === 0) return null;
    return { kept, quiet: this.#quiet, report: () => ledger.report() };
  }

  handOver({ kept, quiet, report }: GatheredBatch): Batch {
    for (const group of kept) keepGroup(group, this.#parts);
    this.#parts.observe({ type: 'batch:collected', groups: kept.length });
    const groups = kept.toSorted((a, b) => a.seed.groupIndex - b.seed.groupIndex);
    return { groups, quiet, report };
  }

  async stop(reason: AbortReason): Promise<AbortReceipt | null> {
    const before = await this.#quiet;
    if (this.#pool.pendingGroups === 0) return before;
    this.#quiet = this.#abort(reason);
    return await this.#quiet;
  }

  #fromShelf(): CollectedGroup[] {
    return this.#shelf.splice(0, this.#parts.options.batchGroups);
  }

  async #fill(kept: CollectedGroup[], signal: AbortSignal): Promise<void> {
    const { batchGroups } = this.#parts.options;
    while (kept.length < batchGroups) {
      this.#submit(batchGroups - kept.length);
      if (this.#pool.pendingGroups === 0) {
        if (!this.#take(kept)) return; // the dataset has ended
        continue;
      }
      await this.#pool.progress(signal);
      this.#take(kept);
    }
  }

  #submit(needed: number): void {
    const { options, source } = this.#parts;
    const { pendingGroups, openPlaces } = this.#pool;
    const count = groupsToStart({ needed, pendingGroups, openPlaces }, options);
    for (let started = 0; started < count; started += 1) {
      const seed = source.take();
      if (seed === null) return;
      this.#pool.start(seed);
    }
  }

  /** Whether there was any result. */
  #take(kept: CollectedGroup[]): boolean {
    const results = this.#pool.takeResults();
    for (const result of results) this.#takeOne(result, kept);
    const failure = this.#failure;
    this.#failure = null;
    if (failure !== null) throw failure;
    return results.length > 0;
  }

  /** `kept` null = the batch has been handed over. */
  #takeOne(result: GroupResult, kept: CollectedGroup[] | null): void {
    const { options } = this.#parts;
    if (result.kind === 'unfinished') {
      unfinishedGroup(result, this.#parts);
    } else if (result.kind === 'dropped') {
      dropGroup(result.group, this.#parts);
      this.#countLost(result.group.reason);
    } else if (kept !== null && kept.length < options.batchGroups) {
      this.#lostInARow = 0;
      kept.push(result.group);
    } else if (surplusGroup(result.group, this.#parts)) {
      this.#shelf.push(result.group);
    }
  }

  #countLost(reason: string): void {
    if (reason === 'filtered') return;
    this.#lostInARow += 1;
    const { maxLostGroups } = this.#parts.options;
    if (this.#lostInARow < maxLostGroups) return;
    this.#lostInARow = 0;
    this.#failure ??= stalled(maxLostGroups, reason);
  }

  /** What finished meanwhile is accounted for with the batch. Never rejects. */
  async #abort(reason: AbortReason): Promise<AbortReceipt | null> {
    if (this.#pool.pendingGroups === 0) {
      this.#settleLate();
      return null;
    }
    const receipt = await abortPool(this.#pool, reason, this.#parts);
    this.#settleLate();
    return receipt;
  }

  #settleLate(): void {
    for (const result of this.#pool.takeResults()) {
      if (result.kind === 'dropped') dropGroup(result.group, this.#parts);
      else this.#takeOne(result, null);
    }
  }

  #observe(event: Parameters<CollectorParts['observe']>[0], { observe }: CollectorParts): void {
    this.#ledger.note(event);
    try {
      observe(event);
    } catch {
      // Observers break nothing.
    }
  }
}
