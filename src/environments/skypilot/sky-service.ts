/** The sandbox SDK as calls with types and deadlines; what is safe to repeat is repeated when it failed in passing. Rejects with SkyError. */
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import {
  executed,
  sandboxRecord,
  type BridgeMethod,
  type SandboxRecord,
} from './bridge/bridge-messages.ts';
import type { BridgeReady, SkyBridge } from './bridge/sky-bridge.ts';
import { isPassing, isSkyError, SkyError } from './sky-error.ts';

const maxAttempts = 4;
const firstBackoffMs = 250;
const longestBackoffMs = 5_000;
const callMs = 120_000;

export interface CreateRequest {
  readonly name: string;
  readonly image: string | null;
  readonly pool: string | null;
  readonly cpus: number | null;
  readonly memoryGb: number | null;
  readonly registry: string | null;
  readonly contextName: string | null;
  readonly namespace: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly isCutOff: boolean;
  /** The service ends the sandbox by itself after this. */
  readonly lifetimeSec: number;
  readonly timeoutMs: number;
}

export interface ExecuteRequest {
  readonly name: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The service kills the command then. */
  readonly limitSec: number;
}

export interface Executed {
  readonly exitCode: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

export class SkyService {
  readonly #bridge: SkyBridge;
  readonly #clock: Clock;

  constructor(bridge: SkyBridge, clock: Clock) {
    this.#bridge = bridge;
    this.#clock = clock;
  }

  ready(signal: AbortSignal): Promise<BridgeReady> {
    return this.#bridge.ready(signal);
  }

  /** Once only: who asks again must look first whether the sandbox is there. The answer may tell of a sandbox that failed. */
  async create(request: CreateRequest, signal: AbortSignal): Promise<SandboxRecord> {
    const params = withoutAbsent({
      name: request.name,
      image: request.image,
      pool: request.pool,
      cpus: request.cpus,
      memory_gb: request.memoryGb,
      registry: request.registry,
      context_name: request.contextName,
      namespace: request.namespace,
      env: request.env,
      secrets: request.secrets.length === 0 ? null : request.secrets,
      block_network: request.isCutOff ? true : null,
      timeout: request.lifetimeSec,
    });
    return sandboxRecord.parse(await this.#call('create', params, signal, request.timeoutMs));
  }

  /** Those that the caller may see, whoever made them. */
  async list(signal: AbortSignal): Promise<readonly SandboxRecord[]> {
    return sandboxRecord.array().parse(await this.#repeat('list', {}, signal));
  }

  /** Runs argv to its end, once only. `repeatable` commands do no harm when they are carried out twice. */
  async execute(
    request: ExecuteRequest & { readonly repeatable: boolean },
    signal: AbortSignal,
  ): Promise<Executed> {
    const { name, argv, env = {}, limitSec, repeatable } = request;
    const params = { name, argv, env, timeout_seconds: limitSec };
    const ms = callMs + limitSec * 1000;
    const answer = executed.parse(
      await (repeatable
        ? this.#repeat('execute', params, signal, ms)
        : this.#call('execute', params, signal, ms)),
    );
    return {
      exitCode: answer.exit_code,
      stdout: Buffer.from(answer.stdout, 'base64'),
      stderr: Buffer.from(answer.stderr, 'base64'),
    };
  }

  /** A part of a host file becomes a file of the sandbox, in a folder that is there. */
  async write(
    part: {
      readonly name: string;
      readonly hostPath: string;
      readonly offset: number;
      readonly size: number;
      readonly to: string;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { name, hostPath, offset, size, to } = part;
    await this.#repeat('write', { name, host_path: hostPath, offset, size, to }, signal);
  }

  /** A file of the sandbox becomes a host file. */
  async read(
    file: { readonly name: string; readonly from: string; readonly hostPath: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { name, from, hostPath } = file;
    await this.#repeat('read', { name, from, host_path: hostPath }, signal);
  }

  /** Resolves when the sandbox has ended, or there was none. */
  async terminate(name: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#repeat('terminate', { name }, signal);
    } catch (error) {
      if (!isSkyError(error, 'not-found')) throw error;
    }
  }

  async #repeat(
    method: BridgeMethod,
    params: unknown,
    signal: AbortSignal,
    ms?: number,
  ): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1)
      try {
        return await this.#call(method, params, signal, ms);
      } catch (error) {
        signal.throwIfAborted();
        if (!isPassing(error) || attempt === maxAttempts) throw error;
        const growing = Math.min(longestBackoffMs, firstBackoffMs * 2 ** attempt);
        const waitMs = error.retryAfterMs ?? growing * (0.5 + Math.random() / 2);
        await this.#clock.sleep(waitMs, signal);
      }
  }

  async #call(
    method: BridgeMethod,
    params: unknown,
    signal: AbortSignal,
    ms = callMs,
  ): Promise<unknown> {
    using limit = new LinkedAbort([signal], {
      ms,
      reason: () => new SkyError('unavailable', `${method} took longer than ${ms / 1000} s`),
    });
    return await this.#bridge.call(method, params, limit.signal);
  }
}

/** An early release need not know a parameter that nobody uses. */
function withoutAbsent(params: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== null));
}
