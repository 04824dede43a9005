/**
 * Reads a sampled turn whose thoughts and calls stand between marks. Bytes become text as soon as characters are complete. Held back is only what may still
 * become a mark, the line ends that templates put around marks, and a call until its end: what is no call after all is text, mark and all.
 */
import type { ToolDefinition } from '../../engines/chat-message.ts';
import type { SampledToolCall } from '../../engines/model-call.ts';
import type { SampledMessage, TurnParser, TurnPart } from '../codec.ts';
import type { ParsedCall, TurnFormat } from './turn-format.ts';

export interface TurnParserOptions {
  readonly format: TurnFormat;
  /** Text at the end of the prompt: it may have opened the thoughts already. */
  readonly promptEnd: string;
  readonly callIdPrefix: string;
  readonly tools: readonly ToolDefinition[];
  readonly bytesOf: (id: number) => Uint8Array;
  readonly isEnd: (id: number) => boolean;
}

/** `start`: nothing but white space so far, so thoughts may begin. */
type State = 'start' | 'reasoning' | 'text' | 'call';

export class TaggedTurnParser implements TurnParser {
  readonly #options: TurnParserOptions;
  readonly #utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #calls: SampledToolCall[] = [];
  #parts: TurnPart[] = [];
  #state: State;
  /** What has come and is not told of yet. */
  #pending = '';
  /** Line ends at the end of what was told of: they count only when more follows. */
  #lineEnds = '';
  #text = '';
  #reasoning: string | null = null;
  #hasEnded = false;

  constructor(options: TurnParserOptions) {
    this.#options = options;
    const open = options.format.reasoning?.open;
    const isOpen = open !== undefined && options.promptEnd.trimEnd().endsWith(open);
    this.#state = isOpen ? 'reasoning' : open === undefined ? 'text' : 'start';
    if (isOpen) this.#reasoning = '';
  }

  push(ids: readonly number[]): readonly TurnPart[] {
    for (const id of ids) {
      if (this.#hasEnded) break;
      if (this.#options.isEnd(id)) this.#hasEnded = true;
      else this.#pending += this.#utf8.decode(this.#options.bytesOf(id), { stream: true });
    }
    while (this.#step());
    return this.#taken();
  }

  end(): { readonly parts: readonly TurnPart[]; readonly message: SampledMessage } {
    this.#pending += this.#utf8.decode();
    while (this.#step());
    // A call that was cut is none, and its mark was sampled.
    const mark = this.#state === 'call' ? (this.#options.format.calls?.open ?? '') : '';
    const rest = mark + this.#pending;
    this.#pending = '';
    if (this.#state !== 'reasoning') this.#state = 'text';
    this.#tell(rest);
    if (this.#state === 'text') this.#tellLineEnds(0);
    const message = { text: this.#text, reasoning: this.#reasoning, toolCalls: this.#calls };
    return { parts: this.#taken(), message };
  }

  #taken(): readonly TurnPart[] {
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  /** One piece of what is pending; false = more has to come. */
  #step(): boolean {
    switch (this.#state) {
      case 'start':
        return this.#begin();
      case 'reasoning':
        return this.#passUntil(this.#options.format.reasoning?.close ?? null, () => {
          this.#state = 'text';
          this.#lineEnds = '';
        });
      case 'text':
        return this.#passUntil(this.#options.format.calls?.open ?? null, () => {
          this.#state = 'call';
        });
      case 'call':
        return this.#readCall();
    }
  }

  #begin(): boolean {
    const open = this.#options.format.reasoning?.open ?? '';
    const seen = this.#pending.trimStart();
    if (seen.startsWith(open)) {
      this.#pending = seen.slice(open.length);
      this.#reasoning = '';
      this.#state = 'reasoning';
      return true;
    }
    if (open.startsWith(seen)) return false;
    this.#state = 'text';
    return true;
  }

  /** Tells what stands before `mark`, as far as it is certain. */
  #passUntil(mark: string | null, found: () => void): boolean {
    const at = mark === null ? -1 : this.#pending.indexOf(mark);
    if (mark !== null && at >= 0) {
      this.#tell(this.#pending.slice(0, at));
      this.#pending = this.#pending.slice(at + mark.length);
      found();
      return true;
    }
    const held = mark === null ? 0 : lengthOfStart(this.#pending, mark);
    const certain = this.#pending.slice(0, this.#pending.length - held);
    this.#pending = this.#pending.slice(certain.length);
    this.#tell(certain);
    return false;
  }

  #readCall(): boolean {
    const { format, tools } = this.#options;
    const { calls } = format;
    if (calls === null) return false;
    const at = this.#pending.indexOf(calls.close);
    if (at < 0 && !this.#hasEnded) return false;
    const body = at < 0 ? null : this.#pending.slice(0, at);
    const parsed = body === null ? null : calls.parse(body, tools);
    this.#state = 'text';
    if (parsed === null || body === null) {
      this.#tell(calls.open);
      return true;
    }
    this.#tellLineEnds(-calls.gap.length);
    this.#lineEnds = '';
    this.#pending = this.#pending.slice(at + calls.close.length);
    for (const call of parsed) this.#tellCall(call);
    return true;
  }

  #tell(text: string): void {
    const isReasoning = this.#state === 'reasoning';
    let all = this.#lineEnds + text;
    const soFar = isReasoning ? (this.#reasoning ?? '') : this.#text;
    // Between thoughts and text, and after a call, line ends are the template's.
    if (soFar === '' && this.#ownsLineEnds()) all = all.replace(/^\n+/, '');
    else if (!isReasoning && this.#calls.length > 0 && text.trim() === '') all = '';
    const kept = all.replace(/\n+$/, '');
    this.#lineEnds = all.slice(kept.length);
    if (kept === '') return;
    if (isReasoning) {
      this.#reasoning = soFar + kept;
      this.#parts.push({ type: 'reasoning-delta', text: kept });
    } else {
      this.#text += kept;
      this.#parts.push({ type: 'text-delta', text: kept });
    }
  }

  /** Those at the end of a text are its own, but for the last ones that a template puts there. */
  #tellLineEnds(without: number): void {
    const own = without === 0 ? this.#lineEnds : this.#lineEnds.slice(0, without);
    if (own === '' || this.#text === '' || this.#calls.length > 0) return;
    this.#text += own;
    this.#parts.push({ type: 'text-delta', text: own });
  }

  #ownsLineEnds(): boolean {
    return this.#options.format.reasoning !== null;
  }

  #tellCall(call: ParsedCall): void {
    const index = this.#calls.length;
    const { name } = call;
    const id = call.id ?? `${this.#options.callIdPrefix}${index}`;
    this.#calls.push({ id, name, arguments: call.arguments });
    this.#parts.push(
      { type: 'tool-call-start', index, id, name },
      { type: 'tool-call-delta', index, arguments: call.arguments },
      { type: 'tool-call-end', index },
    );
  }
}

/** How many characters at the end of `text` may be the beginning of `mark`. */
function lengthOfStart(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (text.endsWith(mark.slice(0, length))) return length;
  return 0;
}
