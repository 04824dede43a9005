import { z } from 'zod';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Clock } from '../../core/clock.ts';
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import { isRolloutError, RolloutError, type Phase } from '../../core/errors.ts';
import type { ErrorCategory, Sample } from '../../wire/rollout/callback-payloads.ts';
import type { ModelRoute } from '../../wire/rollout/model-route.ts';
import type {
  AbortReceipt,
  Execution,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../execution-backend.ts';
import { nullOptionsSchema, type NullOptions } from './null-options.ts';

export interface NullExecutionParts {
  readonly clock: Clock;
  readonly fetch: typeof fetch;
}

/** One rollout without an agent: it takes the time and has the end that its metadata names. */
export class NullExecution implements Execution {
  readonly result: Promise<ExecutionResult>;
  readonly #request: ExecutionRequest;
  readonly #hooks: ExecutionHooks;
  readonly #parts: NullExecutionParts;
  readonly #life = new LinkedAbort([]);
  #stage = 'starting';

  constructor(request: ExecutionRequest, hooks: ExecutionHooks, parts: NullExecutionParts) {
    this.#request = request;
    this.#hooks = hooks;
    this.#parts = parts;
    this.result = this.#run();
    this.result.catch(() => undefined);
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  async abort(reason: Error): Promise<AbortReceipt> {
    const stage = this.#stage;
    this.#life.abort(reason);
    await this.result.catch(() => undefined);
    return { stage, processesKilled: 0, confirmedGone: [], isComplete: true, problem: null };
  }

  async #run(): Promise<ExecutionResult> {
    const { metadata, wantsGrade } = this.#request;
    const options = nullOptionsSchema.safeParse(metadata?.['null'] ?? {});
    if (!options.success)
      return this.#failed(
        'CONFIG_INVALID',
        'agent-setup',
        `metadata.null: ${z.prettifyError(options.error)}`,
      );
    const { fail, reward } = options.data;
    const isGradeFailing = fail !== null && errorRegistry[fail].category === 'verifier';
    const stopped = await this.#runAgent(options.data);
    if (stopped !== null) return stopped;
    if (fail !== null && !isGradeFailing) return this.#failed(fail, 'agent', 'told to fail');
    const workflow = this.#succeeded(null, 'done');
    if (!wantsGrade) return workflow;
    await this.#hooks.workflowCompleted(workflow);
    const late = await this.#takeTime(
      'grading',
      options.data.grade_ms,
      this.#request.graderTimeoutMs,
    );
    if (late)
      return this.#failed('GRADER_TIMEOUT', 'verifier', 'grading took longer than its limit');
    if (isGradeFailing) return this.#failed(fail, 'verifier', 'told to fail');
    return reward === null
      ? this.#failed('REWARD_MISSING', 'verifier', 'told to have no reward')
      : this.#succeeded(reward, 'done');
  }

  /** null = it came to its end. */
  async #runAgent(options: NullOptions): Promise<ExecutionResult | null> {
    const { agentTimeoutMs } = this.#request;
    if (agentTimeoutMs !== null && agentTimeoutMs <= 0)
      return this.#failed(
        'AGENT_TIMEOUT',
        'agent',
        'the time for the agent was over from the start',
      );
    await this.#hooks.agentBegins();
    this.#life.signal.throwIfAborted();
    const limit = new LinkedAbort([this.#life.signal]);
    if (agentTimeoutMs !== null && options.agent_calls > 0) this.#limit(limit, agentTimeoutMs);
    try {
      const isLate = await this.#takeTime('running agent', options.duration_ms, agentTimeoutMs);
      if (isLate)
        return this.#failed('AGENT_TIMEOUT', 'agent', 'the agent took longer than its limit');
      for (let call = 0; call < options.agent_calls; call += 1) await this.#call(limit.signal);
      return null;
    } catch (error) {
      this.#life.signal.throwIfAborted();
      if (!isRolloutError(error)) throw error;
      return this.#failed(error.code, error.phase, error.message);
    } finally {
      limit.abort(new Error('the agent has ended'));
    }
  }

  #limit(limit: LinkedAbort, ms: number): void {
    const late = new RolloutError('AGENT_TIMEOUT', 'the agent took longer than its limit', {
      phase: 'agent',
    });
    // Timers cannot wait for longer.
    this.#parts.clock.sleep(Math.min(ms, 2 ** 31 - 1), limit.signal).then(
      () => limit.abort(late),
      () => undefined, // the agent was done first
    );
  }

  /** True = the limit ended it. */
  async #takeTime(stage: string, ms: number, limitMs: number | null): Promise<boolean> {
    const { clock } = this.#parts;
    this.#stage = stage;
    this.#hooks.progress({ stage, waitingOn: null, lastProgressAt: clock.now() });
    const isLate = limitMs !== null && ms > limitMs;
    const time = isLate ? limitMs : ms;
    if (time > 0) await clock.sleep(time, this.#life.signal);
    this.#life.signal.throwIfAborted();
    return isLate;
  }

  async #call(signal: AbortSignal): Promise<void> {
    const { route } = this.#request;
    if (route === null)
      throw new RolloutError('MODEL_UNSPECIFIED', 'the request names no model', { phase: 'agent' });
    const fail = (what: string): RolloutError =>
      new RolloutError('ENGINE_UNAVAILABLE', what, { phase: 'model-call' });
    const answer = await this.#asked(route, signal).catch(() => {
      signal.throwIfAborted();
      throw fail('the model could not be reached');
    });
    if (!answer.ok) throw fail(`the model answered ${answer.status}`);
  }

  /** With the whole answer read. */
  async #asked({ baseUrl, apiKey }: ModelRoute, signal: AbortSignal): Promise<Response> {
    const answer = await this.#parts.fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'null', messages: this.#request.prompt }),
      signal,
    });
    await answer.arrayBuffer();
    return answer;
  }

  #succeeded(reward: number | null, stage: 'done'): ExecutionResult {
    return {
      ...{ status: 'success', errMessage: null, errCategory: null },
      sample: this.#sample(reward),
      outcome: {
        ...{ stage, cause: null, trainable: reward !== null, retryable: false },
        verdict: reward === null ? null : { rewards: { reward } },
      },
      ...{ diagnostics: { backend: 'null', phase: 'done' }, trajectory: null, files: [] },
    };
  }

  #failed(cause: ErrorCode, stage: Phase, errMessage: string): ExecutionResult {
    const { category, retryable } = errorRegistry[cause];
    const errCategory: ErrorCategory = cause.endsWith('_TIMEOUT')
      ? 'timeout'
      : category === 'input' || category === 'task' || category === 'verifier'
        ? 'validation_error'
        : 'agent_error';
    return {
      ...{ status: 'failure', sample: this.#sample(null), errMessage, errCategory },
      outcome: { stage, cause, trainable: false, retryable, verdict: null },
      diagnostics: { backend: 'null', phase: stage, cause, category: errCategory },
      ...{ trajectory: null, files: [] },
    };
  }

  #sample(reward: number | null): Sample {
    const { prompt, label } = this.#request;
    return {
      ...{ messages: prompt, trajectoryMessages: prompt, label, reward },
      ...{ isRemoved: false, metrics: {}, extraFields: {} },
    };
  }
}
