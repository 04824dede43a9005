/**
 * The official sandbox SDK in a process of its own: the SDK is Python and in early access, so a crash, a leak or a blocked loop of it costs
 * the calls that run and nothing else. The process is started with the first call, and again with the next one after it has ended.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { RolloutError, messageOf } from '../../../core/errors.ts';
import { LineReader } from '../../../core/line-reader.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { Logger } from '../../../core/logger.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import { SkyError } from '../sky-error.ts';
import {
  fromBridgeSchema,
  maxBridgeLineBytes,
  type BridgeFailure,
  type BridgeMethod,
} from './bridge-messages.ts';

const program = path.resolve(import.meta.dirname, '../../../../python/slipway_skypilot/bridge.py');
const startMs = 60_000;
/** Between the end of its input and SIGKILL. */
const closeGraceMs = 1_000;
/** A bridge that ends this often in a row without having answered a call is not started again. */
const maxFruitlessStarts = 3;
const saidBytes = 2_000;

export interface SkyBridgeOptions {
  /** Path or name on PATH of the Python that has the SDK. */
  readonly python: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
}

interface Waiting {
  readonly method: BridgeMethod;
  readonly ended: PromiseWithResolvers<unknown>;
}

export interface BridgeReady {
  readonly python: string;
  readonly sdk: string | null;
}

export class SkyBridge {
  readonly #options: SkyBridgeOptions;
  readonly #waiting = new Map<number, Waiting>();
  #process: BridgeProcess | null = null;
  #count = 0;
  #fruitless = 0;
  #closing: Promise<void> | null = null;

  constructor(options: SkyBridgeOptions) {
    this.#options = options;
  }

  /** The process that calls go to now; null while there is none. */
  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Starts the process unless it runs. ENVIRONMENT_UNAVAILABLE says what is missing. */
  ready(signal: AbortSignal): Promise<BridgeReady> {
    return raceSignal(this.#started().ready, signal);
  }

  /**
   * One call of the SDK. Rejects with SkyError, of kind `bridge-lost` when the process ended under it: it may have been carried out then.
   * When `signal` fires the call is cancelled and it rejects with the reason.
   */
  async call(method: BridgeMethod, params: unknown, signal: AbortSignal): Promise<unknown> {
    signal.throwIfAborted();
    const bridge = this.#started();
    await raceSignal(bridge.ready, signal);
    this.#count += 1;
    const id = this.#count;
    const ended = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { method, ended });
    try {
      bridge.send({ id, method, params });
      return await raceSignal(ended.promise, signal);
    } catch (error) {
      if (signal.aborted) bridge.send({ cancel: id });
      throw error;
    } finally {
      this.#waiting.delete(id);
    }
  }

  /** Calls that run are lost. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#process?.end() ?? Promise.resolve();
    return this.#closing;
  }

  #started(): BridgeProcess {
    if (this.#closing !== null)
      throw new RolloutError('INTERNAL', 'the skypilot environment is used after its close', {
        phase: 'environment',
      });
    if (this.#process !== null) return this.#process;
    if (this.#fruitless >= maxFruitlessStarts)
      throw unusable('the bridge to the sandbox SDK ends each time it is started', '');
    this.#fruitless += 1;
    const bridge = new BridgeProcess(this.#options, {
      onValue: (id, value) => {
        this.#fruitless = 0;
        this.#waiting.get(id)?.ended.resolve(value);
      },
      onFailure: (id, failure) => {
        this.#fruitless = 0;
        this.#waiting.get(id)?.ended.reject(skyError(failure));
      },
      onGone: (why) => this.#gone(bridge, why),
    });
    this.#process = bridge;
    return bridge;
  }

  #gone(bridge: BridgeProcess, why: string): void {
    if (this.#process === bridge) this.#process = null;
    if (this.#closing === null && this.#waiting.size > 0)
      this.#options.logger.log('warn', 'the bridge to the sandbox SDK has ended', { why });
    for (const { method, ended } of this.#waiting.values())
      ended.reject(new SkyError('bridge-lost', `${method}: the bridge to the SDK ${why}`));
  }
}

interface BridgeEvents {
  readonly onValue: (id: number, value: unknown) => void;
  readonly onFailure: (id: number, failure: BridgeFailure) => void;
  readonly onGone: (why: string) => void;
}

/** One process of the bridge, from its start to its end. */
class BridgeProcess {
  readonly ready: Promise<BridgeReady>;
  readonly #child: ChildProcess;
  readonly #events: BridgeEvents;
  readonly #gone = Promise.withResolvers<undefined>();
  #said = '';

  constructor(options: SkyBridgeOptions, events: BridgeEvents) {
    this.#events = events;
    const own = Object.entries(options.variables).filter(([name]) => !name.startsWith('SLIPWAY_'));
    this.#child = spawn(options.python, ['-u', program], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: Object.fromEntries(own),
    });
    this.ready = this.#listen(options.python);
    this.ready.catch(() => undefined); // whoever calls is told
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  send(message: unknown): void {
    if (this.#child.stdin?.writable === true)
      this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    using force = new LinkedAbort([], { ms: closeGraceMs, reason: () => undefined });
    force.signal.addEventListener('abort', () => this.#child.kill('SIGKILL'));
    await this.#gone.promise;
  }

  #listen(python: string): Promise<BridgeReady> {
    const ready = Promise.withResolvers<BridgeReady>();
    const late = new LinkedAbort([], { ms: startMs, reason: () => undefined });
    late.signal.addEventListener('abort', () => this.#child.kill('SIGKILL'));
    void ready.promise.then(
      () => late[Symbol.dispose](),
      () => late[Symbol.dispose](),
    );
    const lines = new LineReader(
      maxBridgeLineBytes,
      (line) => this.#read(line, ready),
      () => this.#child.kill('SIGKILL'),
    );
    this.#child.stdin?.on('error', () => undefined); // its end says it
    this.#child.stdout?.on('data', (chunk: Buffer) => lines.push(chunk));
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString('utf8')).slice(-saidBytes);
    });
    const over = (why: string): void => {
      ready.reject(unusable(`the bridge to the sandbox SDK (${python}) ${why}`, this.#said));
      this.#events.onGone(why);
      this.#gone.resolve(undefined);
    };
    this.#child.once('error', (error) => {
      if (this.#child.pid === undefined) over(`cannot be started: ${messageOf(error)}`);
    });
    this.#child.once('close', (code, signal) => over(`ended (${signal ?? `exit code ${code}`})`));
    return ready.promise;
  }

  #read(line: string, ready: PromiseWithResolvers<BridgeReady>): void {
    let message;
    try {
      message = fromBridgeSchema.parse(JSON.parse(line));
    } catch {
      this.#child.kill('SIGKILL');
      return;
    }
    if ('ready' in message) ready.resolve(message.ready);
    else if ('broken' in message) {
      const { missing, message: why } = message.broken;
      ready.reject(missing ? noSdk(why) : unusable(`the sandbox SDK does not load: ${why}`, ''));
      this.#child.stdin?.end();
    } else if ('error' in message) this.#events.onFailure(message.id, message.error);
    else this.#events.onValue(message.id, message.value);
  }
}

function skyError({ kind, message, retry_after: seconds }: BridgeFailure): SkyError {
  return new SkyError(kind, message, typeof seconds === 'number' ? seconds * 1000 : null);
}

function noSdk(why: string): RolloutError {
  return new RolloutError('ENVIRONMENT_UNAVAILABLE', `no sandbox SDK of SkyPilot: ${why}`, {
    phase: 'environment',
    retryable: false,
    field: 'environment.kwargs.python',
    remedy:
      'Install the sandbox SDK that comes with SkyPilot Platform (early access; the packages on PyPI do not have it), or name the Python that has it.',
  });
}

function unusable(message: string, said: string): RolloutError {
  return new RolloutError('ENVIRONMENT_UNAVAILABLE', message, {
    phase: 'environment',
    retryable: false,
    field: 'environment.kwargs.python',
    ...(said === '' ? {} : { detail: said }),
    remedy: 'Name a Python ≥ 3.9 that has the sandbox SDK of SkyPilot.',
  });
}
