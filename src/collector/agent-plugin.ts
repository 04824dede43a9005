/**
 * The agent plugin: a module named by configuration as `path/file.js:run`, which exports how an agent is run and, if agents go on by themselves after an
 * abort of the engines, an `abort` beside it. Plugins are the only place that knows an agent's host.
 */
import type { Logger } from '../core/logger.ts';
import type { AbortHookAnswer, AbortHookRequest } from './abort/abort-hook.ts';
import type { MemberFault, MemberRequest } from './member.ts';

/** What a module's `run` is called with. */
export interface AgentRunInput {
  readonly request: MemberRequest;
  /** What `/chat/completions` is appended to; the agent's calls go there. Empty = there is no model. */
  readonly baseUrl: string;
  /** Of the session behind that address; null = there is none. */
  readonly session: AgentSessionName | null;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** Sampling parameters in the words of chat completions. */
  readonly sampling: Readonly<Record<string, unknown>>;
  /** Of the row. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The plugin's own section of the configuration. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly logger: Logger;
  /** Fires when nobody waits for the result any more. */
  readonly signal: AbortSignal;
}

export interface AgentSessionName {
  /** `host:port`. */
  readonly serverId: string;
  /** Of the life of that server; null = it names none. */
  readonly instanceId: string | null;
}

/** What `run` gives back; null = the agent could not be run, which is an infrastructure loss. Further keys reach hooks as metadata. */
export interface AgentRunResult {
  readonly reward?: number | null;
  /** Says that `reward` is none of the policy's doing; absent = it is. */
  readonly fault?: MemberFault;
  readonly exit_status?: string;
  readonly agent_metrics?: Readonly<Record<string, unknown>>;
  readonly eval_report?: Readonly<Record<string, unknown>>;
  readonly [key: string]: unknown;
}

export interface AgentAbortInput extends AbortHookRequest {
  readonly options: Readonly<Record<string, unknown>>;
  readonly logger: Logger;
  /** Its deadline: what is not done then is waited for no longer. */
  readonly signal: AbortSignal;
}

export interface AgentPluginModule {
  readonly run: (input: AgentRunInput) => Promise<AgentRunResult | null>;
  /** What it gives back is for the receipt; nothing is fine. */
  readonly abort?: (input: AgentAbortInput) => Promise<Partial<AbortHookAnswer> | undefined>;
}
