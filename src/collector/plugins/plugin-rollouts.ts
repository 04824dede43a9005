/**
 * Rollouts by a plugin's `run`: a session for the agent's model calls, the agent, then what its session holds. A plugin that throws or answers null has lost the
 * member; what it says otherwise is the policy's, unless it names a fault itself.
 */
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type { AgentPluginModule, AgentRunResult } from '../agent-plugin.ts';
import type { MemberEnd, MemberRequest } from '../member.ts';
import type { RolloutPort } from '../rollout-port.ts';
import type { AgentSession, AgentSessions, CollectedSession } from './agent-sessions.ts';

export interface PluginRolloutsOptions {
  readonly run: AgentPluginModule['run'];
  /** null = calls go to `baseUrl`, and there are no samples. */
  readonly sessions: AgentSessions | null;
  readonly baseUrl: string;
  readonly sampling: Readonly<Record<string, unknown>>;
  /** The plugin's own section of the configuration. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly logger: Logger;
}

export class PluginRollouts implements RolloutPort {
  readonly #options: PluginRolloutsOptions;

  constructor(options: PluginRolloutsOptions) {
    this.#options = options;
  }

  async run(request: MemberRequest, signal: AbortSignal): Promise<MemberEnd> {
    const session = (await this.#options.sessions?.open(signal)) ?? null;
    try {
      const result = await this.#result(request, session, signal);
      const collected = (await session?.collect(signal)) ?? null;
      return endOf(result, collected);
    } finally {
      await session?.close();
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** A text = why there is none. */
  async #result(
    request: MemberRequest,
    session: AgentSession | null,
    signal: AbortSignal,
  ): Promise<AgentRunResult | string> {
    const { run, baseUrl, sampling, options, logger } = this.#options;
    const { row, rolloutId, seed } = request;
    try {
      const running = run({
        ...{ request, options, logger, signal, messages: row.messages, metadata: row.metadata },
        ...{ baseUrl: session?.baseUrl ?? baseUrl, session: session?.name ?? null },
        sampling: { ...sampling, ...(seed !== null && { seed }) },
      });
      return (await raceSignal(running, signal)) ?? 'the agent gave no result';
    } catch (error) {
      signal.throwIfAborted();
      logger.log('debug', 'the agent plugin failed', { rolloutId, error: messageOf(error) });
      return messageOf(error);
    }
  }
}

function endOf(result: AgentRunResult | string, collected: CollectedSession | null): MemberEnd {
  const samples = collected?.samples ?? [];
  const end = { samples, reward: null, isRetryable: true };
  if (typeof result === 'string')
    return {
      ...{ ...end, status: 'failed', fault: 'infrastructure', cause: 'no-result', metadata: {} },
      message: result,
    };
  const { reward = null, exit_status: exitStatus = '', fault = null } = result;
  const cause = exitStatus === '' ? null : exitStatus;
  const told = { ...end, cause, message: null, metadata: result };
  if (fault === 'cancelled' || collected?.wasAborted === true)
    return { ...told, status: 'aborted', fault: 'cancelled' };
  if (fault !== null && fault !== 'agent')
    return { ...told, status: 'failed', fault, isRetryable: fault !== 'task' };
  if (collected !== null && samples.length === 0)
    return { ...told, status: 'failed', fault: 'infrastructure', cause: 'no-calls' };
  const isTruncated = samples.some((sample) => sample.isTruncated);
  return {
    ...{ ...told, status: isTruncated ? 'truncated' : 'completed', fault, isRetryable: false },
    reward: reward !== null && Number.isFinite(reward) ? reward : null,
  };
}
