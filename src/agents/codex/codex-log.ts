/**
 * The log that Codex keeps of a session, as steps: all items of one call of the model are one step, its results are the observation. A record of the
 * call's usage closes it; `response_id` is the id under which the gateway knows the call.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { AtifObservationResult, AtifToolCall } from '../../wire/atif/atif.ts';
import type { CliRecord } from '../installed/cli.ts';
import {
  argumentsOf,
  asCount,
  asObject,
  asText,
  jsonLines,
  objectIn,
  objectsOf,
  type JsonObject,
} from '../installed/log-lines.ts';

interface ModelCall {
  readonly timestamp: string | null;
  readonly turnId: string | null;
  readonly texts: string[];
  readonly reasoning: string[];
  readonly toolCalls: AtifToolCall[];
  readonly results: AtifObservationResult[];
  usage: JsonObject | null;
  responseId: string | null;
}

export async function readCodexLog(dir: string): Promise<CliRecord | null> {
  const file = await newestLog(path.join(dir, 'sessions'));
  if (file === null) return null;
  const session = new CodexSession();
  for await (const line of jsonLines(file)) session.take(line);
  return session.record(path.basename(file, '.jsonl'));
}

/** The greatest name in the deepest folder: names begin with the time. */
async function newestLog(dir: string): Promise<string | null> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.jsonl'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
  return files.at(-1) ?? null;
}

class CodexSession {
  readonly #parts: (NewStep | ModelCall)[] = [];
  #open: ModelCall | null = null;
  #head: JsonObject = {};
  #model: string | null = null;
  #turnId: string | null = null;
  #total: JsonObject | null = null;

  take(line: JsonObject): void {
    const payload = asObject(line['payload']) ?? {};
    const timestamp = asText(line['timestamp']);
    switch (line['type']) {
      case 'session_meta':
        if (Object.keys(this.#head).length === 0) this.#head = payload;
        return;
      case 'turn_context':
        this.#model ??= asText(payload['model']);
        this.#turnId = asText(payload['turn_id']);
        return;
      case 'response_item':
        this.#item(payload, timestamp);
        return;
      case 'token_usage_record':
        this.#used(asObject(payload['usage']), asText(payload['response_id']));
        return;
      case 'event_msg':
        if (payload['type'] === 'token_count') this.#counted(asObject(payload['info']));
        return;
      case 'compacted':
        this.#open = null;
        this.#parts.push({
          ...step('system', asText(payload['message']) ?? '', timestamp),
          extra: { context_management: { type: 'compaction', boundary: 'replace' } },
        });
        return;
      default:
        return;
    }
  }

  record(fallbackId: string): CliRecord {
    let number = 0;
    const steps = this.#parts.map((part) =>
      'toolCalls' in part ? callStep(part, (number += 1), this.#model) : part,
    );
    const extra = pick(this.#head, ['originator', 'cwd', 'git']);
    return {
      sessionId: asText(this.#head['id']) ?? fallbackId,
      agent: { version: asText(this.#head['cli_version']), extra },
      steps,
      tokens: {
        prompt: asCount(this.#total?.['input_tokens']),
        completion: asCount(this.#total?.['output_tokens']),
        cached: asCount(this.#total?.['cached_input_tokens']),
      },
    };
  }

  #item(item: JsonObject, timestamp: string | null): void {
    const type = asText(item['type']) ?? '';
    if (type.endsWith('_output')) {
      this.#result(item);
      return;
    }
    if (type === 'message' && item['role'] !== 'assistant') {
      this.#open = null;
      const source = item['role'] === 'user' ? 'user' : 'system';
      this.#parts.push(step(source, textOf(item['content']), timestamp));
      return;
    }
    if (!['message', 'reasoning'].includes(type) && !type.endsWith('_call')) return;
    const call = this.#callFor(timestamp);
    if (type === 'message') call.texts.push(textOf(item['content']));
    else if (type === 'reasoning') call.reasoning.push(reasoningOf(item));
    else call.toolCalls.push(toolCallOf(item, type));
  }

  /** What is said after a call's usage is known belongs to the next one. */
  #callFor(timestamp: string | null): ModelCall {
    if (this.#open !== null && this.#open.usage === null) return this.#open;
    const call: ModelCall = {
      ...{ timestamp, turnId: this.#turnId, usage: null, responseId: null },
      ...{ texts: [], reasoning: [], toolCalls: [], results: [] },
    };
    this.#parts.push(call);
    this.#open = call;
    return call;
  }

  #result(item: JsonObject): void {
    const id = asText(item['call_id']);
    if (id === null) return;
    const owner = this.#parts.findLast(
      (part): part is ModelCall =>
        'toolCalls' in part && part.toolCalls.some((call) => call.tool_call_id === id),
    );
    owner?.results.push({ source_call_id: id, content: outputOf(item['output']) });
  }

  #used(usage: JsonObject | null, responseId: string | null): void {
    if (this.#open === null || this.#open.usage !== null) return;
    this.#open.usage = usage;
    this.#open.responseId = responseId;
  }

  #counted(counts: JsonObject | null): void {
    this.#total = asObject(counts?.['total_token_usage']) ?? this.#total;
    this.#used(asObject(counts?.['last_token_usage']), null);
  }
}

function step(source: 'user' | 'system', message: string, timestamp: string | null): NewStep {
  return { source, message, ...(timestamp !== null && { timestamp }) };
}

function callStep(call: ModelCall, number: number, model: string | null): NewStep {
  const { usage, reasoning, toolCalls, results, timestamp, turnId, responseId } = call;
  return {
    source: 'agent',
    ...(timestamp !== null && { timestamp }),
    ...(model !== null && { model_name: model }),
    message: call.texts.join('\n\n'),
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('\n\n') }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(results.length > 0 && { observation: { results } }),
    ...(usage !== null && {
      metrics: {
        prompt_tokens: asCount(usage['input_tokens']),
        completion_tokens: asCount(usage['output_tokens']),
        cached_tokens: asCount(usage['cached_input_tokens']),
        extra: {
          ...pick(usage, ['reasoning_output_tokens', 'total_tokens']),
          ...(responseId !== null && { response_id: responseId }),
        },
      },
    }),
    llm_call_count: 1,
    extra: { api_call_id: `api_call_${number}`, ...(turnId !== null && { codex_turn_id: turnId }) },
  };
}

/** Another kind of call than a function's, such as a search, has no arguments of its own. */
function toolCallOf(item: JsonObject, type: string): AtifToolCall {
  const text = item['arguments'] ?? item['input'];
  return {
    tool_call_id: asText(item['call_id']) ?? '',
    function_name: asText(item['name']) ?? type,
    arguments: text === undefined ? pick(item, ['action', 'status']) : argumentsOf(text),
  };
}

function textOf(content: unknown): string {
  return objectsOf(content)
    .map(({ text }) => asText(text) ?? '')
    .join('');
}

function reasoningOf(item: JsonObject): string {
  return [...objectsOf(item['summary']), ...objectsOf(item['content'])]
    .map(({ text }) => asText(text) ?? '')
    .join('\n\n');
}

/** A text, parts with texts, or a text of JSON that holds the output. */
function outputOf(output: unknown): string {
  if (typeof output !== 'string') return textOf(output);
  return asText(objectIn(output)?.['output']) ?? output;
}

function pick(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => (object[name] == null ? [] : [[name, object[name]] as const])),
  );
}
