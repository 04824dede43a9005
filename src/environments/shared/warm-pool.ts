/**
 * Sandboxes that are started before a trial asks for them, in the order in which trials are going to ask. One of them is a sandbox of its run like any other: journalled
 * and labelled before it is created, with an expiry, in the limits, and removed with what the run leaves when it is killed. Nothing has run in it. It is given to
 * the first trial that asks for exactly what it was made as, under the name that it has, and belongs to that trial from then on.
 */
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, messageOf } from '../../core/errors.ts';
import { lowerId } from '../../core/ids.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import type { Environment, EnvironmentProvider, EnvironmentSpec } from '../environment.ts';
import { PooledEnvironment, type Taken } from './pooled-environment.ts';
import { WrappedProvider } from './wrapped-provider.ts';

export interface WarmPoolOptions {
  /** Sandboxes that are ready or being made, and nobody's. */
  readonly size: number;
  /** One that nobody took is removed after this. */
  readonly idleMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface PoolUse {
  /** Starts that were given a sandbox of the pool. */
  readonly hits: number;
  readonly misses: number;
  /** Removed, since nobody took them in time. */
  readonly unused: number;
}

/** A sandbox that did not start, for a reason that passes, is made again; so often in all. */
const maxTries = 3;

interface Entry {
  readonly key: string;
  readonly spec: EnvironmentSpec;
  readonly environment: Environment;
  readonly started: Promise<boolean>;
}

/** Wraps an owned provider. Closing it removes what nobody took and leaves the provider inside open. */
export class WarmPool extends WrappedProvider {
  readonly #options: WarmPoolOptions;
  readonly #ending = new LinkedAbort([]);
  readonly #entries: Entry[] = [];
  /** Trials that were served before the schedule came to them. */
  readonly #served = new Map<string, number>();
  readonly #work = new Set<Promise<unknown>>();
  #hasPlace = Promise.withResolvers<undefined>();
  readonly #use = { hits: 0, misses: 0, unused: 0 };

  constructor(inner: EnvironmentProvider, options: WarmPoolOptions) {
    super(inner);
    this.#options = options;
  }

  get use(): PoolUse {
    return { ...this.#use };
  }

  /** Fills the pool with what the next trials ask for, in that order, until there is no more or the pool is closed. A schedule that fails ends there. */
  fill(schedule: AsyncIterable<EnvironmentSpec>): void {
    this.#track(this.#fill(schedule));
  }

  override environment(spec: EnvironmentSpec): Environment {
    return new PooledEnvironment(this.inner.environment(spec), {
      take: (signal) => this.#take(spec, signal),
    });
  }

  override async close(): Promise<void> {
    this.#ending.abort(new Error('the pool is closed'));
    this.#hasPlace.resolve(undefined);
    while (this.#work.size > 0) await Promise.allSettled([...this.#work]);
    await Promise.allSettled(this.#entries.splice(0).map((entry) => this.#remove(entry)));
  }

  async #fill(schedule: AsyncIterable<EnvironmentSpec>): Promise<void> {
    const { signal } = this.#ending;
    try {
      for await (const spec of schedule) {
        if (signal.aborted) return;
        await this.#make(spec, 1);
      }
    } catch (error) {
      this.#warn('the pool of sandboxes is not filled any more', error);
    }
  }

  /** Waits for a place. Nothing is made for a trial that made its own meanwhile. */
  async #make(spec: EnvironmentSpec, tries: number): Promise<void> {
    const { signal } = this.#ending;
    while (this.#entries.length >= this.#options.size && !signal.aborted)
      await this.#hasPlace.promise;
    if (signal.aborted) return;
    const key = keyOf(spec);
    const served = this.#served.get(key) ?? 0;
    if (served > 0) this.#served.set(key, served - 1);
    else if (!spec.forceBuild) this.#add(spec, key, tries);
  }

  #add(spec: EnvironmentSpec, key: string, tries: number): void {
    const { idleMs } = this.#options;
    const expiresAtMs = Date.parse(spec.labels.expiresAt) + idleMs;
    const made = {
      ...spec,
      name: `pool-${lowerId(16)}`,
      labels: { ...spec.labels, trial: 'pool', expiresAt: new Date(expiresAtMs).toISOString() },
    };
    const environment = this.inner.environment(made);
    const started = environment.start({ signal: this.#ending.signal }).then(
      () => true,
      (error: unknown) => {
        if (this.#ending.signal.aborted) return false;
        this.#warn('a sandbox of the pool did not start', error);
        const isPassing = isRolloutError(error) && error.retryable;
        if (isPassing && tries < maxTries) this.#track(this.#make(spec, tries + 1));
        return false;
      },
    );
    const entry = { key, spec: made, environment, started };
    this.#entries.push(entry);
    this.#track(this.#watch(entry));
  }

  /** Removes what did not start, or was not taken in time. */
  async #watch(entry: Entry): Promise<void> {
    const { clock, idleMs } = this.#options;
    if (await entry.started) await clock.sleep(idleMs, this.#ending.signal).catch(() => undefined);
    if (this.#ending.signal.aborted || !this.#drop(entry)) return;
    if (await entry.started) this.#use.unused += 1;
    await this.#remove(entry);
  }

  /** The sandbox of the pool that is what `spec` asks for; null = there is none. */
  async #take(spec: EnvironmentSpec, signal: AbortSignal): Promise<Taken | null> {
    const key = keyOf(spec);
    const wantedUntil = Date.parse(spec.labels.expiresAt);
    for (;;) {
      const entry = this.#entries.find(
        (each) => each.key === key && Date.parse(each.spec.labels.expiresAt) >= wantedUntil,
      );
      if (entry === undefined || spec.forceBuild || this.#ending.signal.aborted) {
        this.#use.misses += 1;
        this.#served.set(key, (this.#served.get(key) ?? 0) + 1);
        return null;
      }
      this.#drop(entry);
      const { environment } = entry;
      if (!(await entry.started)) {
        await this.#remove(entry);
        continue;
      }
      if (!(await environment.isAlive(signal).catch(() => false))) {
        await this.#remove(entry);
        signal.throwIfAborted();
        continue;
      }
      this.#use.hits += 1;
      return { environment };
    }
  }

  /** Whether it was in the pool until now. */
  #drop(entry: Entry): boolean {
    const at = this.#entries.indexOf(entry);
    if (at === -1) return false;
    this.#entries.splice(at, 1);
    this.#hasPlace.resolve(undefined);
    this.#hasPlace = Promise.withResolvers<undefined>();
    return true;
  }

  async #remove({ environment }: Entry): Promise<void> {
    try {
      await environment.destroy();
    } catch (error) {
      this.#warn('a sandbox of the pool was not removed', error);
    }
  }

  #track(work: Promise<unknown>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  #warn(what: string, error: unknown): void {
    this.#options.logger.log('warn', what, { environment: this.kind, cause: messageOf(error) });
  }
}

/** Everything of a sandbox but whose it is. */
function keyOf(spec: EnvironmentSpec): string {
  const { image, workdir, env, limits, network, laterNetworks } = spec;
  const { hostEndpoint, extraCaBundle, layers } = spec;
  const variables = Object.entries(env).sort();
  return JSON.stringify([
    ...[image, workdir, variables, limits, network, laterNetworks],
    ...[hostEndpoint, extraCaBundle, layers],
  ]);
}
