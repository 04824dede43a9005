/** Carries out what an agent in Python asks of its environment. */
import type { z } from 'zod';
import { isRolloutError, type RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import {
  harborAgentRequests,
  type HarborAgentMethod,
} from '../../wire/runner/harbor-agent-messages.ts';
import type { AgentEnvironment, AgentRun } from '../agent.ts';

/** Python's `ExecResult`. */
interface ExecAnswer {
  readonly stdout: string;
  readonly stderr: string;
  readonly return_code: number;
}

export class EnvironmentRequests {
  readonly #environment: AgentEnvironment;
  readonly #record: AgentRun['record'];
  readonly #signal: AbortSignal;
  readonly #refused = new Map<string, RolloutError>();

  /** `signal` ends what is asked for, whoever still waits for it. */
  constructor(
    environment: AgentEnvironment,
    { record, signal }: { readonly record: AgentRun['record']; readonly signal: AbortSignal },
  ) {
    this.#environment = environment;
    this.#record = record;
    this.#signal = signal;
  }

  /** The last typed failure of this code that a request ended with; null = none did. */
  refused(code: string | null): RolloutError | null {
    return code === null ? null : (this.#refused.get(code) ?? null);
  }

  async answer(method: string, params: unknown, withdrawn: AbortSignal): Promise<unknown> {
    try {
      if (!isMethod(method)) throw new Error(`an agent cannot ask for ${method}`);
      return await this.#carryOut(method, params, withdrawn);
    } catch (error) {
      if (isRolloutError(error)) this.#refused.set(error.code, error);
      throw error;
    }
  }

  async #carryOut(
    method: HarborAgentMethod,
    params: unknown,
    withdrawn: AbortSignal,
  ): Promise<unknown> {
    using link = new LinkedAbort([this.#signal, withdrawn]);
    const { signal } = link;
    switch (method) {
      case 'exec':
        return await this.#exec(harborAgentRequests.exec.parse(params), signal);
      case 'record':
        this.#record(harborAgentRequests.record.parse(params));
        return null;
      case 'upload_file':
      case 'upload_dir':
      case 'download_file':
      case 'download_dir': {
        const { source, target } = harborAgentRequests[method].parse(params);
        await this.#environment[transfers[method]](source, target, signal);
        return null;
      }
    }
  }

  async #exec(
    request: z.infer<(typeof harborAgentRequests)['exec']>,
    signal: AbortSignal,
  ): Promise<ExecAnswer> {
    const { command, cwd, env, scoped_env: scoped, timeout_sec: limit, user } = request;
    const isScoped = Object.keys(scoped).length > 0;
    const environment = isScoped ? this.#environment.withEnv(scoped) : this.#environment;
    const { stdout, stderr, exitCode } = await environment.exec(
      { command, cwd, env, user, timeoutMs: limit === null ? null : limit * 1000 },
      signal,
    );
    return { stdout, stderr, return_code: exitCode };
  }
}

const transfers = {
  upload_file: 'uploadFile',
  upload_dir: 'uploadDir',
  download_file: 'downloadFile',
  download_dir: 'downloadDir',
} as const;

function isMethod(method: string): method is HarborAgentMethod {
  return Object.hasOwn(harborAgentRequests, method);
}
