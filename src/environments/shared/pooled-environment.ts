import type { DestroyReceipt, Environment, StartReport } from '../environment.ts';
import { WrappedEnvironment, type StartOptions } from './wrapped-environment.ts';

export interface Taken {
  /** Started. */
  readonly environment: Environment;
}

/** An environment whose start is given a ready sandbox where there is one, and makes its own where not. */
export class PooledEnvironment extends WrappedEnvironment {
  protected inner: Environment;
  readonly #pool: { take(signal: AbortSignal): Promise<Taken | null> };
  #taking: Promise<Taken | null> | null = null;

  constructor(own: Environment, pool: { take(signal: AbortSignal): Promise<Taken | null> }) {
    super();
    this.inner = own;
    this.#pool = pool;
  }

  override async start(options: StartOptions): Promise<StartReport> {
    options.signal.throwIfAborted();
    this.#taking = this.#pool.take(options.signal);
    const taken = await this.#taking;
    if (taken === null) return await this.inner.start(options);
    this.inner = taken.environment;
    options.signal.throwIfAborted();
    return { imageMs: 0, bootMs: 0 };
  }

  /** A sandbox that was being taken is this one's to remove. */
  override async destroy(options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt> {
    const taken = await this.#taking?.catch(() => null);
    if (taken !== null && taken !== undefined) this.inner = taken.environment;
    return await this.inner.destroy(options);
  }
}
