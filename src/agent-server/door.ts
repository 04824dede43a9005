/**
 * Where `/run` requests wait while the server has no place for their rollouts: Miles sends a whole batch at once, waits for every answer and never sends one
 * again. Those of a tenant go in by the order in which they came, up to a number; the queue behind the door is bounded as it is for everybody.
 */
import type { Clock } from '../core/clock.ts';
import { Limiter } from '../core/limiter.ts';
import type { Caller, SubmitAnswer } from '../scheduler/rollout-service.ts';

const tryAgainMs = 200;

export class Door {
  /** One for each tenant that waits: places that are kept for one are not behind another's requests. */
  readonly #lines = new Map<string | null, Limiter>();
  readonly #maxWaiting: number;
  readonly #clock: Clock;

  constructor(maxWaiting: number, clock: Clock) {
    this.#maxWaiting = maxWaiting;
    this.#clock = clock;
  }

  /** What `submit` answers once that is no lack of room. Rejects with the reason of `signal`. */
  async enter(
    submit: () => Promise<SubmitAnswer>,
    { tenant, signal }: Caller & { readonly signal: AbortSignal },
  ): Promise<SubmitAnswer> {
    signal.throwIfAborted();
    const answer = this.#waiting(tenant) === 0 ? await submit() : null;
    if (answer !== null && !isFull(answer)) return answer;
    if (this.#waiting(tenant) >= this.#maxWaiting) return answer ?? tooMany;
    const line = this.#lines.get(tenant) ?? new Limiter(1);
    this.#lines.set(tenant, line);
    try {
      return await line.run(signal, async () => {
        for (;;) {
          const next = await submit();
          if (!isFull(next)) return next;
          await this.#clock.sleep(tryAgainMs, signal);
        }
      });
    } finally {
      if (this.#waiting(tenant) === 0) this.#lines.delete(tenant);
    }
  }

  #waiting(tenant: string | null): number {
    const line = this.#lines.get(tenant);
    return line === undefined ? 0 : line.active + line.waiting;
  }
}

function isFull(answer: SubmitAnswer): boolean {
  return answer.kind === 'refused' && answer.reason !== 'disk-full';
}

const tooMany: SubmitAnswer = {
  kind: 'refused',
  ...{ reason: 'full', detail: 'too many trials wait for a place', retryAfterS: 30 },
};
