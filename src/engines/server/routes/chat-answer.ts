/** Chat answers, whole and as streams. Both come out of one splitter, so that they say the same. */
import type { StreamWriter } from '../exchange.ts';
import type { Generation } from '../generation.ts';
import { ReplySplitter, type ReplyPart } from '../reply-splitter.ts';
import { mix, PrefixHash } from '../seeded.ts';
import type { Vocabulary } from '../token-model.ts';
import { chatLogprob, doneEvent, event, metaInfo, usageOf } from '../token-views.ts';
import type { ChatRequestBody } from './chat-request.ts';

export interface ChatAnswerOptions {
  readonly generation: Generation;
  readonly request: ChatRequestBody;
  readonly vocabulary: Vocabulary;
  readonly model: string;
  readonly createdS: number;
}

function splitterOf({ request }: ChatAnswerOptions): ReplySplitter {
  return new ReplySplitter({
    splitsReasoning: request.separatesReasoning,
    splitsTools: request.tools.length > 0,
  });
}

function finishReason({ finish }: Generation, toolCalls: number): string {
  if (finish === null) return 'abort';
  if (finish.type === 'stop') return toolCalls > 0 ? 'tool_calls' : 'stop';
  return finish.type;
}

/** vLLM's name for what stopped the reply: a string or an id; null = the end token or nothing. */
function stopReason({ finish }: Generation, endId: number): string | number | null {
  return finish?.type === 'stop' && finish.matched !== endId ? finish.matched : null;
}

function callId({ request }: Generation, index: number): string {
  return `call_${mix(PrefixHash.of(request.promptIds).low, index).toString(16).padStart(8, '0')}`;
}

function sglext({ generation, request }: ChatAnswerOptions): Record<string, unknown> | null {
  if (!request.returnsInputIds && !request.returnsOutputIds) return null;
  return {
    ...(request.returnsInputIds && { input_ids: generation.request.promptIds }),
    // One list per choice.
    ...(request.returnsOutputIds && { output_ids: [generation.tokens.map(({ id }) => id)] }),
  };
}

export function chatAnswer(options: ChatAnswerOptions): Record<string, unknown> {
  const { generation, request, vocabulary, model, createdS } = options;
  const { tokens, output } = generation;
  const splitter = splitterOf(options);
  const text = output.text.slice(0, output.shownLength);
  const parts = [...splitter.push(text), ...splitter.end()];
  const join = (type: ReplyPart['type']): string =>
    parts.map((part) => (part.type === type && part.type !== 'tool' ? part.text : '')).join('');
  const calls = parts.filter((part) => part.type === 'tool');
  const reasoning = join('reasoning');
  const extension = sglext(options);
  return {
    id: generation.request.id,
    object: 'chat.completion',
    created: createdS,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: join('content'),
          ...(request.separatesReasoning && {
            reasoning_content: reasoning === '' ? null : reasoning,
          }),
          ...(calls.length > 0 && {
            tool_calls: calls.map((call, index) => ({
              id: callId(generation, index),
              type: 'function',
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
        },
        logprobs: request.logprobs
          ? {
              content: tokens.map((token) =>
                chatLogprob(token, vocabulary, request.namesTokensById),
              ),
            }
          : null,
        finish_reason: finishReason(generation, calls.length),
        stop_reason: stopReason(generation, vocabulary.endId),
        ...(request.returnsMetaInfo && {
          meta_info: metaInfo(generation, generation.weightVersion, {
            logprobs: request.logprobs,
            topLogprobs: request.topLogprobs,
            names: null,
            count: tokens.length,
            input: null,
          }),
        }),
        ...(request.returnsTokenIds && { token_ids: tokens.map(({ id }) => id) }),
      },
    ],
    usage: usageOf(generation),
    ...(request.returnsTokenIds && { prompt_token_ids: generation.request.promptIds }),
    ...(extension !== null && { sglext: extension }),
  };
}

type Delta = Readonly<Record<string, unknown>>;

export class ChatStream implements StreamWriter {
  readonly #options: ChatAnswerOptions;
  readonly #splitter: ReplySplitter;
  /** The part of every event that does not change, without its closing brace. */
  readonly #head: Readonly<Record<string, unknown>>;
  #shown = 0;
  #hasBegun = false;
  #calls = 0;
  /** Tokens that events may tell of, and that they have told of. */
  #known = 0;
  #told = 0;

  constructor(options: ChatAnswerOptions) {
    this.#options = options;
    this.#splitter = splitterOf(options);
    this.#head = {
      id: options.generation.request.id,
      object: 'chat.completion.chunk',
      created: options.createdS,
      model: options.model,
    };
  }

  tokens(from: number, to: number): string {
    let events = '';
    for (let index = from; index < to; index += 1) events += this.#token(index);
    return events;
  }

  #token(index: number): string {
    const { generation, request } = this.#options;
    this.#known = index + 1;
    const upTo = Math.min(generation.textEnds[index] ?? 0, generation.output.shownLength);
    const deltas = this.#advance(upTo).flatMap((part) => this.#deltas(part));
    const tells = request.returnsTokenIds || request.logprobs;
    if (deltas.length === 0 && tells) deltas.push({ content: '' });
    return this.#begin() + deltas.map((delta) => this.#event(delta, null)).join('');
  }

  end(): string {
    const { generation, request } = this.#options;
    const rest = [...this.#advance(generation.output.shownLength), ...this.#splitter.end()];
    const deltas = rest.flatMap((part) => this.#deltas(part));
    const events = [this.#begin(), ...deltas.map((delta) => this.#event(delta, null))];
    this.#known = generation.tokens.length;
    events.push(this.#event({}, finishReason(generation, this.#calls)));
    const extension = sglext(this.#options);
    if (extension !== null) events.push(event({ ...this.#head, choices: [], sglext: extension }));
    if (request.showsUsage)
      events.push(event({ ...this.#head, choices: [], usage: usageOf(generation) }));
    return events.join('') + doneEvent;
  }

  #advance(upTo: number): readonly ReplyPart[] {
    if (upTo <= this.#shown) return [];
    const text = this.#options.generation.output.text.slice(this.#shown, upTo);
    this.#shown = upTo;
    return this.#splitter.push(text);
  }

  #deltas(part: ReplyPart): Delta[] {
    if (part.type !== 'tool')
      return [part.type === 'content' ? { content: part.text } : { reasoning_content: part.text }];
    const index = this.#calls++;
    const id = callId(this.#options.generation, index);
    const named = { name: part.name, arguments: '' };
    return [
      { tool_calls: [{ index, id, type: 'function', function: named }] },
      ...chunksOf(part.arguments).map((piece) => ({
        tool_calls: [{ index, function: { arguments: piece } }],
      })),
    ];
  }

  /** The first event: the role, and the prompt's ids where vLLM sends them. */
  #begin(): string {
    if (this.#hasBegun) return '';
    this.#hasBegun = true;
    const { generation, request } = this.#options;
    const delta = { role: 'assistant', content: '' };
    return event({
      ...this.#head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
      ...(request.returnsTokenIds && { prompt_token_ids: generation.request.promptIds }),
    });
  }

  #event(delta: Delta, reason: string | null): string {
    const { generation, request, vocabulary } = this.#options;
    const tokens = generation.tokens.slice(this.#told, this.#known);
    this.#told = this.#known;
    const choice = {
      index: 0,
      delta,
      logprobs:
        request.logprobs && tokens.length > 0
          ? {
              content: tokens.map((token) =>
                chatLogprob(token, vocabulary, request.namesTokensById),
              ),
            }
          : null,
      finish_reason: reason,
      ...(reason !== null && { stop_reason: stopReason(generation, vocabulary.endId) }),
      ...(request.returnsTokenIds && { token_ids: tokens.map(({ id }) => id) }),
    };
    return event({ ...this.#head, choices: [choice] });
  }
}

/** Arguments come in pieces, as they do from real engines. */
function chunksOf(text: string): string[] {
  return text.match(/[^]{1,24}/gu) ?? [];
}
