import { messageOf } from '../../core/errors.ts';
import type { DestroyReceipt, Environment, StartReport } from '../environment.ts';
import { recordGone, type Ownership } from './ownership.ts';
import { WrappedEnvironment, type StartOptions } from './wrapped-environment.ts';

interface OwnedBy extends Ownership {
  readonly kind: string;
  readonly trial: string;
}

/**
 * An environment whose name is on disk before its creation is asked for. Order of a start: intent journalled, place in the creation
 * limiter, create, creation journalled. Order of an ending: removal confirmed, then journalled.
 */
export class OwnedEnvironment extends WrappedEnvironment {
  protected readonly inner: Environment;
  readonly #by: OwnedBy;
  #intended: Promise<void> | null = null;

  constructor(inner: Environment, by: OwnedBy) {
    super();
    this.inner = inner;
    this.#by = by;
  }

  override async start(options: StartOptions): Promise<StartReport> {
    options.signal.throwIfAborted();
    const { journal, limiter, clock, kind, trial } = this.#by;
    const intendedAt = clock.now().toISOString();
    this.#intended = journal.intend({ name: this.name, provider: kind, trial, intendedAt });
    await this.#intended;
    return await limiter.run(options.signal, async () => {
      const report = await this.inner.start(options);
      await this.#recordCreated();
      return report;
    });
  }

  override async destroy(options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt> {
    const receipt = await this.inner.destroy(options);
    if (this.#intended !== null) {
      await this.#intended.catch(() => undefined); // start has reported it
      await recordGone(this.#by, this.name);
    }
    return receipt;
  }

  /** An intent that stays `intended` in the journal is cleaned all the same, so this failure does not end the trial. */
  async #recordCreated(): Promise<void> {
    try {
      await this.#by.journal.created(this.name);
    } catch (error) {
      this.#by.logger.log('warn', 'creation of a sandbox was not journalled', {
        sandbox: this.name,
        cause: messageOf(error),
      });
    }
  }
}
