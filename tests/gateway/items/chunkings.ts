/**
 * Answers made up from a seed and cut anywhere: between and inside the pieces of the model, inside escapes and surrogate pairs, and at any byte of the stream.
 * However it is cut, the items are those of the answer.
 */
import assert from 'node:assert/strict';
import type { AnswerItem } from '../../../src/gateway/items/answer.ts';
import type { ToolSpec } from '../../../src/gateway/items/conversation.ts';
import { seededRandom } from '../../support/random.ts';
import { joined, readBytes, readWhole } from './read-answer.ts';

const words = [
  'ls -la',
  ' ',
  '\n',
  '"',
  '\\',
  'é',
  '日本',
  '🙂',
  '👩‍👩‍👧',
  '\u0007',
  '{',
  '}',
  '\\n',
  '\u2028',
  'x',
];
const spec = { namespace: null, description: null, parameters: null, isStrict: null } as const;
const tools: readonly ToolSpec[] = [
  { ...spec, name: 'run', form: 'function' },
  { ...spec, name: 'close', namespace: 'agents', form: 'function' },
  { ...spec, name: 'patch', form: 'custom' },
];
const upstreamNames = ['run', 'agents__close', 'patch'];

/** Throws with the seed that fails. Both forms of an answer are read where the upstream has both. */
export async function checkChunkings(count: number, firstSeed: number): Promise<void> {
  for (let seed = firstSeed; seed < firstSeed + count; seed++)
    try {
      await new Chunking(seed).check();
    } catch (error) {
      throw new Error(`the chunking of seed ${seed} fails`, { cause: error });
    }
}

interface Call {
  readonly item: Extract<AnswerItem, { readonly kind: 'tool-call' }>;
  readonly name: string;
  readonly sampled: string;
}

class Chunking {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  async check(): Promise<void> {
    const texts = this.#texts();
    const calls = Array.from({ length: this.#below(4) }, (_, index) => this.#call(index));
    const items: readonly AnswerItem[] = [...texts, ...calls.map(({ item }) => item)];
    const deltas = [...texts.flatMap((item) => this.#textDeltas(item)), ...this.#callDeltas(calls)];
    const finish = calls.length > 0 ? 'tool_calls' : 'stop';
    const got = await readBytes(this.#cutBytes(this.#stream(deltas, finish)), { tools });
    assert.deepEqual(got.answer.items, items);
    assert.equal(got.answer.finish, calls.length > 0 ? 'tool-calls' : 'stop');
    assert.deepEqual(got.answer.usage, {
      inputTokens: 7,
      outputTokens: 5,
      cachedTokens: 0,
      reasoningTokens: 0,
    });
    assert.deepEqual(got.notes, []);
    if (texts.length > 2) return;
    const whole = readWhole(wholeAnswer(texts, calls, finish), { tools });
    assert.deepEqual(joined(whole.events), joined(got.events));
  }

  /** Thoughts and text take turns. */
  #texts(): readonly Extract<AnswerItem, { readonly text: string }>[] {
    const kinds = ['reasoning', 'text'] as const;
    return Array.from({ length: this.#below(4) }, (_, index) => ({
      kind: kinds[index % 2] ?? 'text',
      text: this.#text(1),
    }));
  }

  #call(index: number): Call {
    const which = this.#below(tools.length);
    const { name, namespace, form } = tools[which] ?? { ...spec, name: 'run', form: 'function' };
    const callId = `call-${index}`;
    const text = this.#text(0);
    const sampled =
      form === 'custom'
        ? `${this.#space()}{${this.#space()}"input"${this.#space()}:${this.#space()}${this.#escaped(text)}${this.#space()}}`
        : this.#pick(['', '{}', JSON.stringify({ command: text }), '{"command": "cut off']);
    return {
      item: {
        kind: 'tool-call',
        callId,
        tool: { name, namespace },
        form,
        arguments: form === 'custom' ? text : sampled,
      },
      name: upstreamNames[which] ?? 'run',
      sampled,
    };
  }

  #textDeltas(item: AnswerItem): readonly object[] {
    if (item.kind === 'tool-call') return [];
    const field = item.kind === 'text' ? 'content' : this.#pick(['reasoning_content', 'reasoning']);
    return this.#pieces(item.text).map((piece) => ({ [field]: piece }));
  }

  /** Calls one after another, or mixed; each begins after the one before it began. */
  #callDeltas(calls: readonly Call[]): readonly object[] {
    const isMixed = this.#below(2) === 0;
    const queues = calls.map(({ item, name, sampled }, index) => {
      const [first = '', ...more] = this.#below(2) === 0 ? ['', sampled] : this.#pieces(sampled);
      const named = { name, arguments: first };
      return [
        { index, id: item.callId, type: 'function', function: named },
        ...more.flatMap((rest) =>
          this.#pieces(rest).map((piece) => ({ index, function: { arguments: piece } })),
        ),
      ];
    });
    const order: object[] = [];
    let begun = isMixed ? 0 : queues.length;
    while (queues.some((queue) => queue.length > 0)) {
      const open = queues.slice(0, begun).filter((queue) => queue.length > 0);
      const isNext = begun < queues.length && (open.length === 0 || this.#below(3) === 0);
      if (isNext) begun += 1;
      const queue = isNext ? queues[begun - 1] : isMixed ? this.#pick(open) : open[0];
      const piece = queue?.shift();
      if (piece !== undefined) order.push({ tool_calls: [piece] });
    }
    return order;
  }

  #stream(deltas: readonly object[], finish: string): string {
    const chunks: object[] = [chunk({ role: 'assistant', content: '' })];
    for (const delta of deltas) {
      if (this.#below(8) === 0)
        chunks.push(chunk(this.#pick([{}, { content: null }, { tool_calls: [] }])));
      chunks.push(chunk(delta));
    }
    const last = chunks.length - 1;
    // Some hosts say the reason beside the last piece, others behind it.
    if (this.#below(2) === 0) chunks[last] = withFinish(chunks[last] ?? {}, finish);
    else chunks.push(withFinish(chunk({}), finish));
    chunks.push({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 5 } });
    const ending = this.#pick(['\n\n', '\r\n\r\n']);
    const events = chunks.map((each) => `data: ${JSON.stringify(each)}${ending}`);
    return `${events.join(this.#pick(['', ': alive\n\n']))}data: [DONE]${ending}`;
  }

  #cutBytes(stream: string): readonly Uint8Array[] {
    const bytes = new TextEncoder().encode(stream);
    const pieces: Uint8Array[] = [];
    for (let from = 0; from < bytes.length;) {
      const to = from + 1 + this.#below(this.#below(4) === 0 ? 3 : 400);
      pieces.push(bytes.subarray(from, to));
      from = to;
    }
    return pieces;
  }

  /** Cut anywhere, in the middle of a surrogate pair as well. */
  #pieces(text: string): readonly string[] {
    const pieces: string[] = [];
    for (let from = 0; from < text.length;) {
      const to = from + 1 + this.#below(6);
      pieces.push(text.slice(from, to));
      from = to;
    }
    return pieces.length === 0 ? [''] : pieces;
  }

  /** A JSON string, some of it escaped without need. */
  #escaped(text: string): string {
    const units = Array.from({ length: text.length }, (_, at) => text.charAt(at));
    const isPlain = this.#below(2) === 0;
    if (isPlain) return JSON.stringify(text);
    return `"${units.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`;
  }

  #text(least: number): string {
    return Array.from({ length: least + this.#below(12) }, () => this.#pick(words)).join('');
  }

  #space(): string {
    return this.#pick(['', '', ' ', '\n  ']);
  }

  #pick<T>(values: readonly T[]): T {
    const value = values[this.#below(values.length)];
    if (value === undefined) throw new Error('nothing to pick from');
    return value;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

function chunk(delta: object): object {
  return { choices: [{ index: 0, delta, finish_reason: null }] };
}

function withFinish(of: object, finish: string): object {
  const [choice] = (of as { choices: readonly object[] }).choices;
  return { choices: [{ ...choice, finish_reason: finish }] };
}

function wholeAnswer(
  texts: readonly Extract<AnswerItem, { readonly text: string }>[],
  calls: readonly Call[],
  finish: string,
): object {
  const reasoning = texts.find(({ kind }) => kind === 'reasoning')?.text ?? null;
  const content = texts.find(({ kind }) => kind === 'text')?.text ?? null;
  const message = {
    role: 'assistant',
    content,
    reasoning_content: reasoning,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ item, name, sampled }) => ({
        id: item.callId,
        type: 'function',
        function: { name, arguments: sampled },
      })),
    }),
  };
  return {
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: { prompt_tokens: 7, completion_tokens: 5 },
  };
}
