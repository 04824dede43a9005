import type { Clock } from '../core/clock.ts';
import type { RolloutNews } from './facts.ts';
import type { StageName } from './metrics.ts';

type Stage = Exclude<StageName, 'whole'>;

/** Which stage begins with which news; null = none does any more. */
const begins: Readonly<Record<RolloutNews['type'], Stage | null>> = {
  queued: 'queued',
  started: 'running',
  requeued: 'queued',
  completed: 'grading',
  ended: 'settling',
  settled: null,
};

interface Timed {
  readonly bornMs: number;
  stage: Stage;
  sinceMs: number;
}

/** How long rollouts stay in each stage of their lives. Holds one small record per rollout that is not settled. */
export class RolloutTimes {
  readonly #clock: Clock;
  readonly #record: (stage: StageName, durationMs: number) => void;
  readonly #timed = new Map<string, Timed>();

  constructor(clock: Clock, record: (stage: StageName, durationMs: number) => void) {
    this.#clock = clock;
    this.#record = record;
  }

  get size(): number {
    return this.#timed.size;
  }

  note(id: string, type: RolloutNews['type']): void {
    const nowMs = this.#clock.monotonicMs();
    const stage = begins[type];
    const timed = this.#timed.get(id);
    if (timed === undefined) {
      // One of an earlier life of the server: its time before is not known.
      if (stage !== null) this.#timed.set(id, { bornMs: nowMs, stage, sinceMs: nowMs });
      return;
    }
    this.#record(timed.stage, nowMs - timed.sinceMs);
    if (stage !== null) {
      timed.stage = stage;
      timed.sinceMs = nowMs;
      return;
    }
    this.#timed.delete(id);
    this.#record('whole', nowMs - timed.bornMs);
  }
}
