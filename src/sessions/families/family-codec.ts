/** A codec of a family's rules and a checkpoint's words. */
import type {
  ChatCodec,
  Conversation,
  KnownPrefix,
  Rendered,
  RenderedSuffix,
  TurnParser,
} from '../codec.ts';
import type { ChatMessage, ToolDefinition } from '../../engines/chat-message.ts';
import { TaggedTurnParser } from '../parsers/tagged-turn-parser.ts';
import type { Checkpoint } from './checkpoint.ts';
import { checkpointError } from './checkpoint.ts';
import { conversationError } from './conversation-error.ts';
import type { Cuts, Family, TextRenderer, Variables } from './family.ts';

/** A codec that encodes any text too, control tokens included: for proofs, which sample with it. */
export interface FamilyCodec extends ChatCodec {
  encode(text: string): Int32Array;
}

export async function openFamily(
  family: Family,
  checkpoint: Checkpoint,
  now: () => Date,
): Promise<FamilyCodec> {
  const render = await family.openRenderer(checkpoint, now);
  return new CheckpointCodec({ family, checkpoint, render });
}

interface CodecParts {
  readonly family: Family;
  readonly checkpoint: Checkpoint;
  readonly render: TextRenderer;
}

class CheckpointCodec implements FamilyCodec {
  readonly family: string;
  readonly maxTrim: number;
  readonly appendRoles: ReadonlySet<string>;
  readonly fixedVariables: Readonly<Record<string, unknown>>;
  readonly assistantStart: string | null;
  readonly #parts: CodecParts;
  readonly #ends: ReadonlySet<number>;
  /** Ids that a template replaces by the opener of the next turn. */
  readonly #openers: ReadonlySet<number>;
  readonly #trailing: ReadonlySet<number>;
  readonly #isCut: (id: number) => boolean;

  constructor(parts: CodecParts) {
    const { family, checkpoint } = parts;
    this.#parts = parts;
    this.family = family.name;
    this.appendRoles = new Set(family.appendRoles);
    this.fixedVariables = family.fixedVariables;
    this.assistantStart = family.assistantStart;
    this.#isCut = cutter(family.cuts, checkpoint);
    this.#ends = idsOf(family.ends, checkpoint);
    const { boundary } = family;
    this.#openers = boundary.kind === 'opener' ? idsOf(boundary.tokens, checkpoint) : new Set();
    this.maxTrim = boundary.kind === 'opener' ? 1 : 0;
    this.#trailing =
      boundary.kind === 'closed' ? new Set(this.encode(boundary.after)) : this.#openers;
  }

  render(conversation: Conversation, options: { readonly opensTurn: boolean }): Rendered {
    const text = this.#text(conversation, options);
    return { text, ids: this.encode(text) };
  }

  renderSuffix(conversation: Conversation, prefix: KnownPrefix): RenderedSuffix {
    const { messages } = conversation;
    const base = standIns(messages[prefix.messages - 1]);
    const appended = messages.slice(prefix.messages);
    const without = this.#text({ ...conversation, messages: base }, { opensTurn: false });
    const all = [...base, ...appended];
    const whole = this.#text({ ...conversation, messages: all }, { opensTurn: true });
    if (!whole.startsWith(without))
      throw conversationError(
        `rendered suffix diff failed for [${appended.map(({ role }) => role).join(', ')}]`,
      );
    const suffix = whole.slice(without.length);
    const boundary = this.#boundary(prefix.ids.at(-1));
    const front = this.encode(boundary.text);
    const back = this.encode(suffix);
    const ids = new Int32Array(front.length + back.length);
    ids.set(front);
    ids.set(back, front.length);
    return { text: boundary.text + suffix, ids, trimmed: boundary.trimmed };
  }

  parser(turn: {
    readonly promptIds: Int32Array;
    readonly tools: readonly ToolDefinition[];
  }): TurnParser {
    const { vocabulary } = this.#parts.checkpoint;
    return new TaggedTurnParser({
      format: this.#parts.family.format,
      promptEnd: this.decode(turn.promptIds.slice(-promptTail)),
      callIdPrefix: `call_${turn.promptIds.length}_`,
      tools: turn.tools,
      bytesOf: (id) => vocabulary.bytesOf(id),
      isEnd: (id) => this.isEnd(id),
    });
  }

  isEnd(id: number): boolean {
    return this.#ends.has(id);
  }

  isTrailing(id: number): boolean {
    return this.#trailing.has(id);
  }

  isCut(id: number): boolean {
    return this.#isCut(id);
  }

  engineVariables(variables: Variables): Variables {
    return this.#parts.family.engineVariables(variables);
  }

  decode(ids: Int32Array): string {
    return this.#parts.checkpoint.vocabulary.decode([...ids], { skipsSpecial: false });
  }

  #text(conversation: Conversation, options: { readonly opensTurn: boolean }): string {
    const templateVariables = { ...conversation.templateVariables, ...this.fixedVariables };
    const text = this.#parts.render({ ...conversation, templateVariables }, options);
    // Python cannot encode half a character either.
    if (!text.isWellFormed()) throw conversationError('a text holds half a character');
    return text;
  }

  encode(text: string): Int32Array {
    if (text === '') return new Int32Array(0);
    return Int32Array.from(this.#parts.checkpoint.vocabulary.encode(text, { parsesSpecial: true }));
  }

  #boundary(last: number | undefined): { readonly text: string; readonly trimmed: number } {
    const { boundary } = this.#parts.family;
    if (boundary.kind === 'plain') return { text: '', trimmed: 0 };
    if (boundary.kind === 'opener')
      return { text: '', trimmed: last !== undefined && this.#openers.has(last) ? 1 : 0 };
    const end = this.#parts.checkpoint.tokens.get(boundary.end);
    return { text: last === end ? boundary.after : boundary.end + boundary.after, trimmed: 0 };
  }
}

/** Ids at the end of a prompt that the opening of a turn lies within. */
const promptTail = 16;

function cutter(cuts: Cuts, checkpoint: Checkpoint): (id: number) => boolean {
  const { vocabulary, tokens } = checkpoint;
  if (cuts !== 'all' && 'only' in cuts) {
    const ids = idsOf(cuts.only, checkpoint);
    return (id) => ids.has(id);
  }
  const inside = new Set(cuts === 'all' ? [] : cuts.without.map((name) => tokens.get(name)));
  return (id) => vocabulary.isSpecial(id) && !inside.has(id);
}

function idsOf(names: readonly string[], checkpoint: Checkpoint): ReadonlySet<number> {
  return new Set(
    names.map((name) => {
      const id = checkpoint.tokens.get(name);
      if (id === undefined) throw checkpointError(`${checkpoint.dir} has no token ${name}`);
      return id;
    }),
  );
}

/**
 * What stands for a history whose text is not looked at: the template renders them with and without the new messages, and the difference is the new text. The
 * tool calls are the real ones, since templates look results up by them.
 */
function standIns(last: ChatMessage | undefined): readonly ChatMessage[] {
  const calls = last?.tool_calls ?? [];
  return [
    { role: 'system', content: 'system' },
    {
      role: 'assistant',
      content: '',
      reasoning_content: ' ',
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ];
}
