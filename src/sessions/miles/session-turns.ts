import type { ChatReply } from './chat-reply.ts';
import type { ChatRequest } from './chat-request.ts';
import type { PreparedTurn, TurnNode } from './turn-node.ts';

/** What the two versions of the protocol do differently: where a request goes on from, and what becomes of what it does not go on from. */
export interface SessionTurns {
  /** The turns that a request sees: its path leads to this one. */
  readonly active: TurnNode | null;
  /** All that are kept, in the order of their commits. */
  readonly nodes: readonly TurnNode[];
  /** About what they take of memory. */
  readonly bytes: number;
  /** Finds the place of a request and makes its prompt. Throws what refuses it. */
  prepare(request: ChatRequest): PreparedTurn;
  /** Keeps a turn with its answer. False: others have changed the session meanwhile, and nothing is kept. */
  commit(turn: PreparedTurn, reply: ChatReply): boolean;
}
