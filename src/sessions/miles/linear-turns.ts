/**
 * The first version: one line of turns. A request that differs from what is stored takes the session back to the last turn that it still agrees with, one turn
 * at most: what an agent asks again. That stands even where the request is refused for another reason afterwards, as clients of Miles know it.
 */
import type { ChatReply } from './chat-reply.ts';
import type { ChatRequest } from './chat-request.ts';
import type { Message } from './message-matcher.ts';
import { matchLength, prepareTurn, type TurnRules } from './prepare-turn.ts';
import { refusal } from './session-error.ts';
import type { SessionTurns } from './session-turns.ts';
import { messagesOf, pathTo, turnNode, type PreparedTurn, type TurnNode } from './turn-node.ts';

const maxRollback = 1;

export class LinearTurns implements SessionTurns {
  readonly #rules: TurnRules;
  #tip: TurnNode | null = null;
  #messages: Message[] = [];
  #commits = 0;

  constructor(rules: TurnRules) {
    this.#rules = rules;
  }

  get active(): TurnNode | null {
    return this.#tip;
  }

  get nodes(): readonly TurnNode[] {
    return pathTo(this.#tip);
  }

  get bytes(): number {
    return this.nodes.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  prepare(request: ChatRequest): PreparedTurn {
    const matched = matchLength(this.#messages, request.messages, this.#rules);
    if (matched < this.#messages.length) this.#rollBack(matched, request.messages.length);
    return prepareTurn(this.#rules, request, { parent: this.#tip, stored: this.#messages });
  }

  commit(turn: PreparedTurn, reply: ChatReply): boolean {
    if (turn.parent !== this.#tip) return false;
    const at = { seq: this.#commits, committedS: this.#rules.nowS() };
    this.#commits += 1;
    this.#tip = turnNode(turn, reply, at);
    this.#messages.push(...this.#tip.messages);
    return true;
  }

  #rollBack(matched: number, asked: number): void {
    let target = this.#tip;
    let discarded = 0;
    while (target !== null && target.messagesEnd > matched) {
      target = target.parent;
      discarded += 1;
    }
    if (discarded > maxRollback)
      throw refusal(
        'SESSION_HISTORY_BROKEN',
        `rollback failed: discard_count=${discarded} exceeds max_assistant_rollback_steps=${maxRollback} (stored has ${this.#messages.length} messages, request has ${asked} messages)`,
        { field: 'messages' },
      );
    this.#tip = target;
    this.#messages = [...messagesOf(target)];
  }
}
