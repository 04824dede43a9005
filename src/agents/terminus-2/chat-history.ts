/**
 * The conversation as the model gets it, with a running count of its tokens. The engine says after each reply how many tokens prompt and reply
 * were; text that it has not counted yet is estimated from its bytes, so between two replies the count errs on the high side.
 */
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { ModelResult } from '../../engines/model-call.ts';

/** Bytes of UTF-8 per token. Prose has about 4, code and terminal output less. */
const bytesPerToken = 3;
/** What a template puts around a message. */
const tokensAround = 8;

interface Turn {
  readonly messages: readonly ChatMessage[];
  /** Of everything up to and with this turn. */
  readonly tokens: number;
}

export class ChatHistory {
  #turns: Turn[] = [];

  get messages(): readonly ChatMessage[] {
    return this.#turns.flatMap((turn) => turn.messages);
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  get tokens(): number {
    return this.#turns.at(-1)?.tokens ?? 0;
  }

  add(prompt: string, reply: ChatMessage, result: ModelResult | null): void {
    const messages: readonly ChatMessage[] = [userMessage(prompt), reply];
    const counted = result === null ? null : countedTokens(result);
    this.#turns.push({ messages, tokens: counted ?? this.tokens + estimateTokens(messages) });
  }

  /** Drops the newest turns until at most `tokens` are left; the very first message stays. Answers whether anything went. */
  unwind(tokens: number): boolean {
    const before = this.messages.length;
    while (this.tokens > tokens && this.#turns.length > 1) this.#turns.pop();
    if (this.tokens > tokens) this.replace(this.messages.slice(0, 1));
    return this.messages.length < before;
  }

  replace(messages: readonly ChatMessage[]): void {
    this.#turns = messages.length === 0 ? [] : [{ messages, tokens: estimateTokens(messages) }];
  }
}

export function userMessage(content: string): ChatMessage {
  return { role: 'user', content };
}

export function estimateTokens(messages: readonly ChatMessage[]): number {
  return messages.reduce(
    (sum, { content, reasoning_content: reasoning }) =>
      sum +
      tokensAround +
      estimateText(typeof content === 'string' ? content : '') +
      estimateText(reasoning ?? ''),
    0,
  );
}

function estimateText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** null = the engine did not say. */
function countedTokens({ usage, promptIds, outputIds }: ModelResult): number | null {
  if (usage !== null) return usage.promptTokens + usage.completionTokens;
  return promptIds === null || outputIds === null ? null : promptIds.length + outputIds.length;
}
