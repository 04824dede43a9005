import type { AgentSessionName } from '../agent-plugin.ts';
import type { TrainingSample } from '../training-sample.ts';

/** Where an agent's model calls go, so that their tokens can be collected when it has ended. */
export interface AgentSessions {
  open(signal: AbortSignal): Promise<AgentSession>;
}

export interface AgentSession {
  /** What `/chat/completions` is appended to. */
  readonly baseUrl: string;
  readonly name: AgentSessionName;
  /** Once, when the agent has ended, whatever it came to. Rejects when they cannot be had: the member is lost. */
  collect(signal: AbortSignal): Promise<CollectedSession>;
  /** Never rejects. */
  close(): Promise<void>;
}

export interface CollectedSession {
  /** Empty = the agent made no model call that counts. */
  readonly samples: readonly TrainingSample[];
  /** Some call was cut off at the engine. */
  readonly wasAborted: boolean;
}
