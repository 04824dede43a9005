/**
 * Proves for a checkpoint that a family's codec may be trusted with it. Random conversations are played turn by turn, each assistant's turn sampled as the template
 * itself writes it. Then a history must be append-only, the ids that turns add up to must be those of a render from scratch, and a turn that is read back must
 * render to the same text.
 */
import { isRolloutError } from '../../core/errors.ts';
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { Conversation, SampledMessage } from '../codec.ts';
import type { FamilyCodec } from '../families/family-codec.ts';
import { randomConversation } from './random-conversation.ts';

/**
 * `refused`: the template does not render it. `rewritten`: a later turn changes the text of the history. `merged`: the ids of the turns have another text than a
 * render from scratch. `parsed`: what the parser reads renders to other text.
 */
export type BreakKind = 'refused' | 'rewritten' | 'merged' | 'parsed';

export interface Break {
  readonly conversation: number;
  /** Of the message that breaks. */
  readonly message: number;
  readonly kind: BreakKind;
  readonly why: string;
}

export interface VerifyReport {
  readonly family: string;
  readonly seed: number;
  readonly conversations: number;
  readonly turns: number;
  /** Turns whose ids are a render's from scratch, id for id. */
  readonly equal: number;
  /** Turns of the same text in other ids: a turn that begins in the middle of what one token would hold. */
  readonly respelled: number;
  readonly breaks: readonly Break[];
}

export interface VerifyOptions {
  readonly seed: number;
  readonly conversations: number;
}

export function verifyFamily(codec: FamilyCodec, options: VerifyOptions): VerifyReport {
  const tally = { turns: 0, equal: 0, respelled: 0 };
  const breaks: Break[] = [];
  for (let index = 0; index < options.conversations; index++) {
    const conversation = randomConversation({
      seed: options.seed,
      index,
      roles: codec.appendRoles,
      isHostile: false,
    });
    const found = new Play(codec, conversation, tally).run();
    if (found !== null) breaks.push({ conversation: index, ...found });
  }
  const { seed, conversations } = options;
  return { family: codec.family, seed, conversations, ...tally, breaks };
}

type Found = Omit<Break, 'conversation'>;

class Play {
  readonly #codec: FamilyCodec;
  #conversation: Conversation;
  readonly #tally: { turns: number; equal: number; respelled: number };

  constructor(
    codec: FamilyCodec,
    conversation: Conversation,
    tally: { turns: number; equal: number; respelled: number },
  ) {
    this.#codec = codec;
    this.#conversation = conversation;
    this.#tally = tally;
  }

  run(): Found | null {
    const { messages } = this.#conversation;
    let known: Int32Array | null = null;
    let knownMessages = 0;
    for (const [index, message] of messages.entries()) {
      if (message.role !== 'assistant') continue;
      try {
        const turn = this.#turn(index, known, knownMessages);
        if ('kind' in turn) return turn;
        known = turn.ids;
        knownMessages = index + 1;
      } catch (error) {
        if (!isRolloutError(error, 'CONVERSATION_INVALID')) throw error;
        return { message: index, kind: 'refused', why: error.message };
      }
    }
    return null;
  }

  #turn(
    index: number,
    known: Int32Array | null,
    knownMessages: number,
  ): Found | { readonly ids: Int32Array } {
    const codec = this.#codec;
    const prompt = codec.render(this.#front(index), { opensTurn: true });
    this.#think(index, prompt.text);
    const whole = codec.render(this.#front(index + 1), { opensTurn: false });
    this.#tally.turns += 1;
    if (!whole.text.startsWith(prompt.text))
      return { message: index, kind: 'rewritten', why: difference(prompt.text, whole.text) };
    const merged = known === null ? prompt.ids : this.#merged(index, known, knownMessages);
    if (sameIds(merged, prompt.ids)) this.#tally.equal += 1;
    else {
      const text = codec.decode(merged);
      const scratch = codec.decode(prompt.ids);
      if (text !== scratch)
        return { message: index, kind: 'merged', why: difference(scratch, text) };
      this.#tally.respelled += 1;
    }
    const sampled = this.#sampled(whole.text.slice(prompt.text.length), index);
    const wrong = this.#readBack(index, { prompt: merged, sampled, text: whole.text });
    return wrong ?? { ids: joined(merged, sampled) };
  }

  /** A model whose turn is opened with thoughts has some. */
  #think(index: number, prompt: string): void {
    const message = this.#conversation.messages[index];
    if (!prompt.trimEnd().endsWith('<think>') || message === undefined) return;
    if ((message.reasoning_content ?? '').trim() !== '') return;
    const thoughtful = { ...message, reasoning_content: 'Let me see.' };
    const messages = this.#conversation.messages.with(index, thoughtful);
    this.#conversation = { ...this.#conversation, messages };
  }

  #merged(index: number, known: Int32Array, knownMessages: number): Int32Array {
    const suffix = this.#codec.renderSuffix(this.#front(index), {
      ids: known,
      messages: knownMessages,
    });
    return joined(known.subarray(0, known.length - suffix.trimmed), suffix.ids);
  }

  /** What a model would have sampled: up to and with the token that ends a turn. */
  #sampled(text: string, index: number): Int32Array {
    const codec = this.#codec;
    const ids = codec.encode(text);
    const end = ids.findIndex((id) => codec.isEnd(id));
    if (end >= 0) return ids.subarray(0, end + 1);
    // Where a template ends no turn, the model stops by the opener of the next one.
    const next = codec.maxTrim > 0 ? this.#openerBehind(index) : undefined;
    return next === undefined ? ids : joined(ids, Int32Array.of(next));
  }

  #openerBehind(index: number): number | undefined {
    const { messages } = this.#conversation;
    if (index + 1 >= messages.length) return undefined;
    const length = this.#codec.render(this.#front(index + 1), { opensTurn: false }).ids.length;
    const next = this.#codec.render(this.#front(index + 2), { opensTurn: false }).ids[length];
    return next !== undefined && this.#codec.isEnd(next) ? next : undefined;
  }

  #readBack(
    index: number,
    turn: { readonly prompt: Int32Array; readonly sampled: Int32Array; readonly text: string },
  ): Found | null {
    if (this.#codec.family === 'default') return null;
    const { tools } = this.#conversation;
    const parser = this.#codec.parser({ promptIds: turn.prompt, tools });
    for (const id of turn.sampled) parser.push([id]);
    const message = messageOf(parser.end().message);
    const front = this.#front(index);
    const again = this.#codec.render(
      { ...front, messages: [...front.messages, message] },
      { opensTurn: false },
    );
    // By ids: some vocabularies compose characters, so a model cannot sample what is not composed.
    return sameIds(again.ids, this.#codec.encode(turn.text))
      ? null
      : { message: index, kind: 'parsed', why: difference(turn.text, again.text) };
  }

  #front(count: number): Conversation {
    return { ...this.#conversation, messages: this.#conversation.messages.slice(0, count) };
  }
}

/** As a client sends it back. */
export function messageOf(sampled: SampledMessage): ChatMessage {
  const { text, reasoning, toolCalls } = sampled;
  return {
    role: 'assistant',
    content: text,
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0
      ? {}
      : {
          tool_calls: toolCalls.map(({ id, name, arguments: text }) => ({
            id,
            type: 'function' as const,
            function: { name, arguments: text },
          })),
        }),
  };
}

function joined(front: Int32Array, back: Int32Array): Int32Array {
  const ids = new Int32Array(front.length + back.length);
  ids.set(front);
  ids.set(back, front.length);
  return ids;
}

const sameIds = (a: Int32Array, b: Int32Array): boolean =>
  a.length === b.length && a.every((id, index) => id === b[index]);

const shown = 40;

/** Where two texts part, for a person. */
function difference(expected: string, actual: string): string {
  let at = 0;
  while (at < expected.length && expected[at] === actual[at]) at++;
  const cut = (text: string): string =>
    JSON.stringify(text.slice(Math.max(0, at - shown / 2), at + shown).toWellFormed());
  return `at character ${at}: ${cut(expected)} became ${cut(actual)}`;
}
