import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { LiveRoute } from './live-route.ts';

/** What the log is told of calls: each thing once, or less and less often. */
export class RouteNotes {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  defect(error: unknown): void {
    this.#logger.log('error', 'a model call failed in the gateway', { error: messageOf(error) });
  }

  observerFailed(error: unknown): void {
    this.#logger.log('warn', 'an observer of model calls failed', { error: messageOf(error) });
  }

  spent({ rolloutId, budget: { spent } }: LiveRoute): void {
    if (spent === null) return;
    this.#logger.log('warn', 'a budget of the rollout is used up', {
      ...{ rolloutId, limit: spent.limit, max: spent.max, used: spent.used },
    });
  }

  /** What a client sends with every request is told once. */
  leftOut(route: LiveRoute, notes: readonly string[]): void {
    for (const note of route.fresh(notes))
      this.#logger.log('info', 'a model call was not taken as it came', {
        ...{ rolloutId: route.rolloutId, note },
      });
  }

  refusal(route: LiveRoute, status: number | null, message: string): void {
    const count = route.refused(status, message);
    // The first of a row is news; of those that follow, fewer and fewer.
    if (!Number.isInteger(Math.log2(count))) return;
    this.#logger.log('warn', 'the upstream refuses model calls', {
      ...{ rolloutId: route.rolloutId, status, count },
      message: route.withoutSecrets(message),
    });
  }
}
