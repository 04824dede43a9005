import type { Logger } from '../core/logger.ts';
import type { CallbackNews, RolloutNews } from './facts.ts';

/** The lives of rollouts in the log: how each ended, with its diagnostics, and on level `debug` every step before. */
export class RolloutLines {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  rollout(
    { id, tenant }: { readonly id: string; readonly tenant: string },
    news: RolloutNews,
  ): void {
    const rollout = { rolloutId: id, tenant };
    if (news.type !== 'ended') {
      this.#logger.log('debug', `rollout ${news.type}`, {
        ...rollout,
        ...('attempt' in news && { attempt: news.attempt }),
      });
      return;
    }
    const { status, stage, cause, reward, trainable, retryable, errMessage } = news.outcome;
    this.#logger.log('info', 'rollout ended', {
      ...{ ...rollout, state: status, stage, cause, reward, trainable, retryable },
      ...(errMessage !== null && { error: errMessage }),
      diagnostics: news.diagnostics ?? null,
    });
  }

  callback(rolloutId: string, { channel, result, attempts }: CallbackNews): void {
    const level = result === 'dead' ? 'warn' : 'debug';
    this.#logger.log(level, `callback ${result}`, { rolloutId, channel, attempts });
  }
}
