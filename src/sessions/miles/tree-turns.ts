/**
 * The second version: every turn is kept, in a forest. A request goes on from the turn whose whole path stands at its front; where several do, from the one with
 * the most messages, the latest of equals. Turns that go on from the same one are siblings, told apart by the order of their commits alone.
 */
import type { ChatReply } from './chat-reply.ts';
import type { ChatRequest } from './chat-request.ts';
import type { Message } from './message-matcher.ts';
import { matchLength, prepareTurn, type TurnRules } from './prepare-turn.ts';
import { refusal } from './session-error.ts';
import type { SessionTurns } from './session-turns.ts';
import { messagesOf, turnNode, type PreparedTurn, type TurnNode } from './turn-node.ts';

export interface TreeRules extends TurnRules {
  /** Turns of a session. */
  readonly maxNodes: number;
}

export class TreeTurns implements SessionTurns {
  readonly nodes: TurnNode[] = [];
  readonly #rules: TreeRules;
  readonly #children = new Map<TurnNode | null, TurnNode[]>();
  #active: TurnNode | null = null;
  #bytes = 0;

  constructor(rules: TreeRules) {
    this.#rules = rules;
  }

  get active(): TurnNode | null {
    return this.#active;
  }

  get bytes(): number {
    return this.#bytes;
  }

  prepare(request: ChatRequest): PreparedTurn {
    this.#checkRoom();
    const parent = this.attachPoint(request.messages);
    if (parent?.reply.finishReason === 'length')
      throw refusal(
        'SESSION_TURN_TRUNCATED',
        'truncated generation cannot be extended: the turn that this request goes on from ended with finish_reason length',
        { field: 'messages' },
      );
    // Seen at once, whatever becomes of the request: so clients of Miles know it.
    this.#active = parent;
    return prepareTurn(this.#rules, request, { parent, stored: messagesOf(parent) });
  }

  commit(turn: PreparedTurn, reply: ChatReply): boolean {
    this.#checkRoom();
    const at = { seq: this.nodes.length, committedS: this.#rules.nowS() };
    const node = turnNode(turn, reply, at);
    const siblings = this.#children.get(turn.parent);
    if (siblings === undefined) this.#children.set(turn.parent, [node]);
    else siblings.push(node);
    this.nodes.push(node);
    this.#bytes += node.bytes;
    this.#active = node;
    return true;
  }

  /** null = a new root. Changes nothing. */
  attachPoint(messages: readonly Message[]): TurnNode | null {
    let best: TurnNode | null = null;
    const open: (TurnNode | null)[] = [null];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const from = at?.messagesEnd ?? 0;
      for (const child of this.#children.get(at) ?? []) {
        const { matches } = this.#rules;
        const matched = matchLength(child.messages, messages, { matches, from });
        if (matched < child.messages.length) continue;
        open.push(child);
        if (best === null || isDeeper(child, best)) best = child;
      }
    }
    return best;
  }

  #checkRoom(): void {
    const { maxNodes } = this.#rules;
    if (this.nodes.length < maxNodes) return;
    throw refusal('SESSION_FULL', `the session holds ${maxNodes} turns, which is the most`);
  }
}

function isDeeper(one: TurnNode, other: TurnNode): boolean {
  if (one.messagesEnd !== other.messagesEnd) return one.messagesEnd > other.messagesEnd;
  return one.seq > other.seq;
}
