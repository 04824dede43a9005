/** The main conversation: what is asked goes into its history and into the run's ledger. */
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { ModelResult } from '../../engines/model-call.ts';
import { ChatHistory, estimateTokens, userMessage } from './chat-history.ts';
import type { ModelQueries, ModelReply } from './model-queries.ts';
import type { RunLedger } from './run-ledger.ts';

interface ChatParts {
  readonly queries: ModelQueries;
  readonly ledger: RunLedger;
  readonly sendsReasoning: boolean;
}

export class ModelChat {
  readonly history = new ChatHistory();
  readonly #parts: ChatParts;
  /** Messages that no call of this conversation has carried yet. */
  #unsent: readonly ChatMessage[] = [];

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  /** A failed call leaves the history as it was. */
  async ask(prompt: string, signal: AbortSignal): Promise<ModelReply> {
    const { queries, ledger, sendsReasoning } = this.#parts;
    const asked = userMessage(prompt);
    const reply = await queries.ask([...this.history.messages, asked], signal);
    ledger.addTurn(reply, [...this.#unsent, asked]);
    this.#unsent = [];
    this.history.add(prompt, assistantMessage(reply.result, { sendsReasoning }), reply.result);
    return reply;
  }

  /** The conversation goes on from other messages. */
  replace(messages: readonly ChatMessage[]): void {
    this.history.replace(messages);
    this.#unsent = messages;
  }

  /** What a call with this prompt would need. */
  tokensWith(prompt: string): number {
    return this.history.tokens + estimateTokens([userMessage(prompt)]);
  }
}

export function assistantMessage(
  { text, reasoning }: ModelResult,
  { sendsReasoning }: { readonly sendsReasoning: boolean },
): ChatMessage {
  return {
    role: 'assistant',
    content: text,
    ...(sendsReasoning && reasoning !== null && { reasoning_content: reasoning }),
  };
}
