/** The agent's end of a relayed call: the request that it sent, and where its answer goes. */
import type { BodySource } from '../upstream/upstream-request.ts';
import type { HeaderList } from '../upstream/message-head.ts';
import type { SaidHead } from './said-head.ts';

export interface AgentSide extends BodySource {
  readonly method: 'GET' | 'POST';
  readonly said: SaidHead;
  /** Of the body; null = it is plain. */
  readonly contentEncoding: string | null;
  /** The body where all of it is here; null = some of it is on its way: see `start`. */
  readonly arrived: Buffer | null;
  /** Of the answer that was begun; null = none was. */
  readonly sentStatus: number | null;
  /** The answer has gone out to its end. */
  readonly isDelivered: boolean;
  /** Once, before anything else. */
  listen(listener: AgentListener): void;
  /** What is left of the request is read and forgotten, so that an answer can be read and the connection used again. */
  discard(): void;
  /** Begins the answer. Goes out with what follows in the same turn, or at its end. */
  head(status: number, headers: HeaderList): void;
  /** False = the next piece waits for `agentDrained`. */
  write(bytes: Buffer): boolean;
  end(bytes: Buffer | null): void;
  /** The answer breaks off, so that it cannot be taken for one that ended. */
  destroy(): void;
}

export interface AgentListener {
  agentDrained(): void;
  /** Its answer has gone out, or it has left. May come twice. */
  agentDone(): void;
}
