/**
 * Where `/run` requests wait while the server has no place for their rollouts: Miles sends a whole batch at once, waits for every answer and never sends one
 * again. They go in by the order in which they came, up to a number; the queue behind the door is bounded as it is for everybody.
 */
import type { Clock } from '../core/clock.ts';
import { Limiter } from '../core/limiter.ts';
import type { SubmitAnswer } from '../scheduler/rollout-service.ts';

const tryAgainMs = 200;

export class Door {
  readonly #line = new Limiter(1);
  readonly #maxWaiting: number;
  readonly #clock: Clock;

  constructor(maxWaiting: number, clock: Clock) {
    this.#maxWaiting = maxWaiting;
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#line.active + this.#line.waiting;
  }

  /** What `submit` answers once that is no lack of room. Rejects with the reason of `signal`. */
  async enter(submit: () => Promise<SubmitAnswer>, signal: AbortSignal): Promise<SubmitAnswer> {
    signal.throwIfAborted();
    const answer = this.waiting === 0 ? await submit() : null;
    if (answer !== null && !isFull(answer)) return answer;
    if (this.waiting >= this.#maxWaiting) return answer ?? tooMany;
    return await this.#line.run(signal, async () => {
      for (;;) {
        const next = await submit();
        if (!isFull(next)) return next;
        await this.#clock.sleep(tryAgainMs, signal);
      }
    });
  }
}

function isFull(answer: SubmitAnswer): boolean {
  return answer.kind === 'refused' && answer.reason !== 'disk-full';
}

const tooMany: SubmitAnswer = {
  kind: 'refused',
  ...{ reason: 'full', detail: 'too many trials wait for a place', retryAfterS: 30 },
};
