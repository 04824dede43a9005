/**
 * The engines that one run opens. The first time that an address is used it is knocked at, so that a wrong one is named in a moment and not after
 * every retry of every trial; once it has answered it is trusted: an engine that restarts later is the business of retries. What trials leave open
 * is destroyed with the run.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { messageOf, RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import { SingleFlight } from '../core/single-flight.ts';
import { changedEngine } from '../engines/changed-engine.ts';
import type { Engine, EngineOpener } from '../engines/engine.ts';

const knockLimitMs = 5_000;

export class RunEngines implements AsyncDisposable {
  readonly #inner: EngineOpener;
  readonly #signal: AbortSignal;
  readonly #left = new Set<Engine>();
  readonly #answered = new Set<string>();
  readonly #knocks = new SingleFlight<void>();

  /** `signal` is the run's. */
  constructor(inner: EngineOpener, signal: AbortSignal) {
    this.#inner = inner;
    this.#signal = signal;
  }

  /** How many are open now. */
  get openCount(): number {
    return this.#left.size;
  }

  /** As the inner opener; ENGINE_UNAVAILABLE when nothing listens at an address that has not answered before. */
  readonly open: EngineOpener = async (options) => {
    const engine = await this.#inner(options);
    try {
      await this.#knockOnce(new URL(options.baseUrl));
    } catch (error) {
      await engine.close();
      throw error;
    }
    this.#left.add(engine);
    return watched(engine, () => this.#left.delete(engine));
  };

  async #knockOnce(url: URL): Promise<void> {
    if (this.#answered.has(url.origin)) return;
    await this.#knocks.run(url.origin, this.#signal, (signal) => knock(url, signal));
    this.#answered.add(url.origin);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new RolloutError('CANCELLED', 'the run is over', { phase: 'model-call' });
    const left = [...this.#left];
    this.#left.clear();
    await Promise.all(left.map((engine) => engine.destroy(reason)));
  }
}

/** Resolves when somebody accepts a connection; says nothing and hangs up. */
async function knock(url: URL, signal: AbortSignal): Promise<void> {
  using limit = new LinkedAbort([signal], {
    ms: knockLimitMs,
    reason: () => unreachable(url, `no answer within ${knockLimitMs / 1000} s`, null),
  });
  const socket = connect({
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
  });
  try {
    await once(socket, 'connect', { signal: limit.signal });
  } catch (error) {
    limit.signal.throwIfAborted();
    throw unreachable(url, (error as NodeJS.ErrnoException).code ?? messageOf(error), error);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

function unreachable(url: URL, why: string, cause: unknown): RolloutError {
  return new RolloutError('ENGINE_UNAVAILABLE', `nothing answers at ${url.origin}: ${why}`, {
    phase: 'model-call',
    remedy: 'Start the engine, or correct its address: --ak api_base=URL, or OPENAI_BASE_URL.',
    ...(cause !== null && { cause }),
  });
}

/** The same engine; `gone` is told when it has been closed or destroyed. */
function watched(engine: Engine, gone: () => void): Engine {
  return changedEngine(engine, {
    close: async () => {
      await engine.close();
      gone();
    },
    destroy: async (reason) => {
      await engine.destroy(reason);
      gone();
    },
  });
}
