/** The engine's answer to a turn: what a session keeps of it, and what its client is shown. */
import { exactJson } from '../../core/exact-json.ts';
import { isObject, type Message } from './message-matcher.ts';
import { refusal } from './session-error.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface ChatReply {
  /** As the engine wrote it. */
  readonly text: string;
  /** Without what is for the trainer only. */
  readonly shown: Fields;
  readonly message: Message;
  readonly outputIds: Int32Array;
  readonly logprobs: Float64Array;
  /** As chat spells it: stop, length, tool_calls, abort. */
  readonly finishReason: string | null;
  readonly responseId: string | null;
  readonly weightVersion: string | null;
  readonly cachedTokens: number;
  readonly promptTokens: number;
  /** Seconds; null = the engine does not say. */
  readonly latencyS: number | null;
}

/** ENGINE_RESPONSE_INVALID where the ids of the answer cannot be had of it. Only its first choice is read. */
export function readChatReply(text: string): ChatReply {
  const reply = parsed(text);
  const choices = reply['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isObject(choice)) throw wrong('the engine answered without a choice');
  const meta = choice['meta_info'];
  if (!isObject(meta)) throw wrong('the answer of the engine has no meta_info');
  const triples = meta['output_token_logprobs'];
  if (!Array.isArray(triples)) throw wrong('meta_info of the answer has no output_token_logprobs');
  const message = choice['message'];
  if (!isObject(message)) throw wrong('the answer of the engine has no message');
  if ((message['content'] ?? null) === null)
    throw wrong('the content of the assistant message is null (null content)');
  const count = meta['completion_tokens'];
  if (typeof count !== 'number') throw wrong('meta_info of the answer has no completion_tokens');
  if (triples.length !== count)
    throw wrong(
      `output_token_logprobs has ${triples.length} entries, completion_tokens is ${count}`,
    );
  const outputIds = new Int32Array(triples.length);
  const logprobs = new Float64Array(triples.length);
  for (const [at, triple] of (triples as unknown[]).entries()) {
    const [logprob, id] = Array.isArray(triple) ? (triple as unknown[]) : [];
    if (!isId(id) || typeof logprob !== 'number')
      throw wrong(`output_token_logprobs.${at} is not a log-probability and a token id`);
    outputIds[at] = id;
    logprobs[at] = logprob;
  }
  const finish = choice['finish_reason'];
  return {
    ...{ text, message, outputIds, logprobs },
    shown: { ...reply, choices: (choices as unknown[]).map(withoutReplay) },
    finishReason: typeof finish === 'string' ? finish : null,
    responseId: textOf(reply['id']),
    weightVersion: versionOf(meta['weight_version']),
    cachedTokens: countOf(meta['cached_tokens']),
    promptTokens: countOf(meta['prompt_tokens']),
    latencyS: typeof meta['e2e_latency'] === 'number' ? meta['e2e_latency'] : null,
  };
}

/** A client that asked for a stream gets all of it as one chunk. */
export function streamedReply({ shown }: Pick<ChatReply, 'shown'>): string {
  const choice = (shown['choices'] as readonly Fields[])[0] ?? {};
  const message = choice['message'] as Message;
  const calls = message['tool_calls'];
  const chunk = {
    id: shown['id'],
    object: 'chat.completion.chunk',
    created: shown['created'],
    model: shown['model'],
    choices: [
      {
        index: 0,
        delta: {
          role: message['role'] ?? 'assistant',
          content: message['content'],
          ...((message['reasoning_content'] ?? null) !== null && {
            reasoning_content: message['reasoning_content'],
          }),
          ...(Array.isArray(calls) &&
            calls.length > 0 && {
              tool_calls: calls.map((call: unknown, index) => ({ ...(call as Fields), index })),
            }),
        },
        finish_reason: choice['finish_reason'] ?? null,
      },
    ],
    ...((shown['usage'] ?? null) !== null && { usage: shown['usage'] }),
  };
  return `data: ${exactJson(chunk)}\n\ndata: [DONE]\n\n`;
}

function parsed(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw refusal('ENGINE_RESPONSE_INVALID', 'the answer of the engine is not JSON', { cause });
  }
  if (!isObject(value)) throw wrong('the answer of the engine is not a JSON object');
  return value;
}

const replay = new Set(['routed_experts', 'indexer_topk']);

function withoutReplay(choice: unknown): unknown {
  if (!isObject(choice) || !isObject(choice['meta_info'])) return choice;
  const kept = Object.entries(choice['meta_info']).filter(([name]) => !replay.has(name));
  return { ...choice, meta_info: Object.fromEntries(kept) };
}

const isId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 31;

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const countOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

function versionOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null;
}

const wrong = (message: string): Error => refusal('ENGINE_RESPONSE_INVALID', message);
