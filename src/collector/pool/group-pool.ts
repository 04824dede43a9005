/** Groups at work. Drivers put groups in and take results out; the abort closes its gate and looks at what is live. */
import type { CollectorParts } from '../collector-parts.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { GroupSeed } from '../group.ts';
import { PoolPart } from './pool-part.ts';
import { LiveGroup, type GroupResult } from './live-group.ts';
import { MemberRun, type MemberRunParts } from './member-run.ts';
import { RolloutGate } from './rollout-gate.ts';

export class GroupPool {
  readonly gate: RolloutGate;
  readonly #parts: CollectorParts;
  readonly #runName: string;
  readonly #groups = new Set<LiveGroup>();
  #results: GroupResult[] = [];
  #bells: (() => void)[] = [];
  #finishing = new LinkedAbort([]);

  /** `runName` begins the ids of all rollouts: letters, digits and `-`. */
  constructor(parts: CollectorParts, runName: string) {
    this.#parts = parts;
    this.#runName = runName;
    this.gate = new RolloutGate(parts.options.maxConcurrent);
  }

  /** Groups that have no result yet. */
  get pendingGroups(): number {
    return this.#groups.size;
  }

  /** Places of them that have no end yet. */
  get openPlaces(): number {
    let open = 0;
    for (const group of this.#groups) open += group.openPlaces;
    return open;
  }

  /** Attempts that wait or run. */
  get runs(): readonly MemberRun[] {
    return [...this.#groups].flatMap(({ runs }) => runs);
  }

  /** Nothing enters any more, and what waits is turned away. */
  close(): void {
    this.gate.close();
  }

  /** Those groups that have places without an end, and of which this is true. */
  part(which: (group: LiveGroup) => boolean): PoolPart {
    return new PoolPart([...this.#groups].filter((group) => group.openPlaces > 0 && which(group)));
  }

  start(seed: GroupSeed): void {
    const { options, causes, hooks, clock, weightVersion, observe, rollouts } = this.#parts;
    observe({ type: 'group:started', seed });
    const runParts: MemberRunParts = {
      ...{ gate: this.gate, port: rollouts, clock, settleMs: options.abort.settleMs },
      onStarted: (request) => observe({ type: 'member:started', request }),
      onLate: ({ rolloutId }) =>
        this.#parts.logger.log('debug', 'a rollout settled after it was abandoned', { rolloutId }),
    };
    const group = new LiveGroup(seed, {
      ...{ options, causes, hooks, clock, weightVersion, observe, gate: this.gate },
      ...{ runName: this.#runName, finishing: this.#finishing.signal },
      startRun: (request) => new MemberRun(request, runParts),
      onPlaceDone: () => this.#ring(),
    });
    this.#groups.add(group);
    void group.result.then((result) => {
      this.#groups.delete(group);
      this.#results.push(result);
      this.#ring();
    });
  }

  /** Results since it was last asked, in the order in which they came. */
  takeResults(): readonly GroupResult[] {
    const results = this.#results;
    this.#results = [];
    return results;
  }

  /** Resolves when a place or a group has its end, at once where a result waits; rejects with the reason of `signal`. */
  async progress(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#results.length > 0) return;
    const rung = Promise.withResolvers<undefined>();
    const ring = (): void => rung.resolve(undefined);
    const leave = (): void => rung.reject(signal.reason as Error);
    this.#bells.push(ring);
    signal.addEventListener('abort', leave, { once: true });
    try {
      await rung.promise;
    } finally {
      signal.removeEventListener('abort', leave);
      this.#bells = this.#bells.filter((bell) => bell !== ring);
    }
  }

  /** Lets those who wait for progress look again, as if there had been one. */
  wake(): void {
    this.#ring();
  }

  /** No group is at work. */
  async idle(signal: AbortSignal): Promise<void> {
    while (this.#groups.size > 0) await this.#quiet(signal);
  }

  /** Rewards and filters that still run are not waited for: their groups are unfinished. */
  stopFinishing(reason: Error): void {
    const old = this.#finishing;
    this.#finishing = new LinkedAbort([]);
    old.abort(reason);
  }

  /** As `progress`, but results that wait do not count. */
  async #quiet(signal: AbortSignal): Promise<void> {
    const taken = this.#results;
    this.#results = [];
    try {
      await this.progress(signal);
    } finally {
      this.#results = [...taken, ...this.#results];
    }
  }

  #ring(): void {
    for (const ring of this.#bells.splice(0)) ring();
  }
}
