/**
 * Collects without an end, whether or not anybody asks: groups that are complete wait in a bounded buffer, and `collect` takes the oldest ones. Every rollout has the
 * version of the weights when it was started; a group that falls further behind than the limit is ended where it runs, leaves the buffer where it waits, and is
 * never handed over. Around a change of the weights the trainer calls `pause` and `resume`: nothing is started in between, what runs is held by the engines.
 */
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { AbortReason, AbortReceipt } from '../abort/abort-receipt.ts';
import { abortPool } from '../abort/abort-sequence.ts';
import type { Batch } from '../batch.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { CollectedGroup } from '../group.ts';
import { GroupPool } from '../pool/group-pool.ts';
import type { GroupResult } from '../pool/live-group.ts';
import { BatchLedger } from '../report/batch-ledger.ts';
import { compileAsynchronousOptions } from './asynchronous-options.ts';
import type { AsynchronousOptions, CompiledAsynchronousOptions } from './asynchronous-options.ts';
import { dropGroup, keepGroup, staleGroup, stalled, unfinishedGroup } from './batch-results.ts';
import type { CollectorDriver } from './driver.ts';

/** Where stale work is ended the engines go on for the others: there is nothing to wait for but the agent's hook. */
const staleDrainMs = 1_000;

export class AsynchronousDriver implements CollectorDriver {
  readonly #parts: CollectorParts;
  readonly #options: CompiledAsynchronousOptions;
  readonly #pool: GroupPool;
  /** Complete groups, the oldest first. */
  #buffer: CollectedGroup[] = [];
  /** Groups at work that are being ended because of their age. */
  readonly #stale = new Set<number>();
  readonly #endings = new Set<Promise<unknown>>();
  #ledger = new BatchLedger();
  #life: LinkedAbort | null = null;
  #producing: Promise<void> = Promise.resolve();
  #stopping: Promise<AbortReceipt | null> = Promise.resolve(null);
  #isPaused = false;
  #hasMore = true;
  #lostInARow = 0;
  #failure: Error | null = null;

  constructor(parts: CollectorParts, runName: string, options: AsynchronousOptions = {}) {
    this.#parts = { ...parts, observe: (event) => this.#observe(event, parts) };
    this.#options = compileAsynchronousOptions(options, parts.options);
    this.#pool = new GroupPool(this.#parts, runName);
  }

  /** Groups that are complete and wait. */
  get bufferedGroups(): number {
    return this.#buffer.length;
  }

  async collect(signal: AbortSignal): Promise<Batch | null> {
    await this.#stopping;
    signal.throwIfAborted();
    const beganMs = this.#parts.clock.monotonicMs();
    this.#begin();
    try {
      await this.#fill(signal);
    } catch (error) {
      await this.stop(signal.aborted ? 'stopped' : 'failed');
      throw error;
    }
    const kept = this.#buffer.splice(0, this.#parts.options.batchGroups);
    if (kept.length === 0) return null;
    const ledger = this.#ledger;
    for (const group of kept) keepGroup(group, this.#parts);
    this.#parts.observe({ type: 'batch:collected', groups: kept.length });
    ledger.full(this.#parts.clock.monotonicMs() - beganMs);
    this.#ledger = new BatchLedger();
    this.#pool.wake(); // there is room again
    const groups = kept.toSorted((a, b) => a.seed.groupIndex - b.seed.groupIndex);
    return { groups, quiet: Promise.resolve(null), report: () => ledger.report() };
  }

  /** Nothing is started until `resume`; what runs goes on, and engines may hold its calls. Idempotent. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Starts again; as `weightsChanged`. Idempotent. */
  resume(): void {
    this.#isPaused = false;
    this.weightsChanged();
  }

  /** The trainer's version is another one: what is too old now is ended. */
  weightsChanged(): void {
    this.#dropStale();
    this.#endStale();
    this.#pool.wake();
  }

  /** What is complete stays for the next `collect`; a restart rolls it out anew. */
  stop(reason: AbortReason): Promise<AbortReceipt | null> {
    const before = this.#stopping;
    this.#stopping = this.#stop(before, reason);
    return this.#stopping;
  }

  async #stop(before: Promise<unknown>, reason: AbortReason): Promise<AbortReceipt | null> {
    await before;
    this.#life?.abort(new Error(`collecting ends: ${reason}`));
    this.#life = null;
    await this.#producing;
    const isBusy = this.#pool.pendingGroups > 0;
    const receipt = isBusy ? await abortPool(this.#pool, reason, this.#parts) : null;
    await Promise.all(this.#endings);
    for (const result of this.#pool.takeResults()) this.#takeOne(result);
    this.#failure = null;
    this.#lostInARow = 0;
    return receipt;
  }

  #begin(): void {
    if (this.#life !== null) return;
    this.#life = new LinkedAbort([]);
    this.#pool.gate.open();
    this.#producing = this.#produce(this.#life.signal);
  }

  /** Goes on while nobody asks. Never rejects: a failure is told to whoever collects. */
  async #produce(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#step();
      await this.#pool.progress(signal).catch(() => undefined); // it is asked above
    }
  }

  async #fill(caller: AbortSignal): Promise<void> {
    using link = new LinkedAbort(this.#life === null ? [caller] : [caller, this.#life.signal]);
    const { signal } = link;
    for (;;) {
      signal.throwIfAborted();
      this.#step();
      if (this.#failure !== null) throw this.#failure;
      if (this.#buffer.length >= this.#parts.options.batchGroups) return;
      const isOver = !this.#isPaused && !this.#hasMore && this.#pool.pendingGroups === 0;
      if (isOver) return;
      await this.#pool.progress(signal);
    }
  }

  /** Whoever comes first takes what there is; the other finds nothing to do. */
  #step(): void {
    for (const result of this.#pool.takeResults()) this.#takeOne(result);
    this.#dropStale();
    if (this.#isPaused || this.#failure !== null || !this.#pool.gate.isOpen) return;
    while (this.#hasRoom()) {
      const seed = this.#parts.source.take();
      this.#hasMore = seed !== null;
      if (seed === null) return;
      this.#pool.start(seed);
    }
  }

  #hasRoom(): boolean {
    const { options } = this.#parts;
    const pending = this.#pool.pendingGroups;
    const isFull = pending + this.#buffer.length >= this.#options.bufferGroups;
    if (isFull) return false;
    if (options.granularity === 'group') return pending < options.startGroups;
    return this.#pool.openPlaces + options.groupSize <= options.startGroups * options.groupSize;
  }

  #takeOne(result: GroupResult): void {
    const { seed } = result.kind === 'unfinished' ? result : result.group;
    const wasStale = this.#stale.delete(seed.groupIndex);
    if (result.kind === 'kept') {
      this.#lostInARow = 0;
      this.#buffer.push(result.group);
    } else if (result.kind === 'dropped') {
      dropGroup(result.group, this.#parts);
      this.#countLost(result.group.reason);
    } else if (wasStale) {
      const ends = result.remains.map(({ member }) => member?.end ?? null);
      this.#giveUp({ seed, ends });
    } else {
      unfinishedGroup(result, this.#parts);
    }
  }

  #countLost(reason: string): void {
    if (reason === 'filtered') return;
    this.#lostInARow += 1;
    const { maxLostGroups } = this.#parts.options;
    if (this.#lostInARow >= maxLostGroups) this.#failure ??= stalled(maxLostGroups, reason);
  }

  #isStale({ oldestVersion }: Pick<CollectedGroup, 'oldestVersion'>): boolean {
    const { maxStaleness } = this.#options;
    const version = this.#parts.weightVersion();
    if (maxStaleness === null || version === null || oldestVersion === null) return false;
    return version - oldestVersion > maxStaleness;
  }

  #dropStale(): void {
    const stale = this.#buffer.filter((group) => this.#isStale(group));
    if (stale.length === 0) return;
    this.#buffer = this.#buffer.filter((group) => !stale.includes(group));
    for (const { seed, members } of stale)
      this.#giveUp({ seed, ends: members.map(({ end }) => end) });
  }

  #giveUp(group: Parameters<typeof staleGroup>[0]): void {
    staleGroup(group, { parts: this.#parts, returns: this.#options.stale === 'return' });
  }

  #endStale(): void {
    if (this.#life === null) return;
    const part = this.#pool.part(
      (group) => !this.#stale.has(group.seed.groupIndex) && this.#isStale(group),
    );
    if (part.pendingGroups === 0) return;
    for (const groupIndex of part.groupIndexes) this.#stale.add(groupIndex);
    const { options } = this.#parts;
    const abort = { ...options.abort, drainMs: Math.min(options.abort.drainMs, staleDrainMs) };
    const parts = { ...this.#parts, fleet: null, options: { ...options, abort } };
    const ending = abortPool(part, 'stale', parts);
    this.#endings.add(ending);
    void ending.then(() => this.#endings.delete(ending));
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
