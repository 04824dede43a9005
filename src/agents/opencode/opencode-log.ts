/**
 * What OpenCode prints of a run, as steps: all events of one message of its are one call of the model. A call that broke off and was made again stays
 * under its message, whose last end counts.
 */
import path from 'node:path';
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { AtifObservationResult, AtifToolCall } from '../../wire/atif/atif.ts';
import type { CliRecord, CliTokens } from '../installed/cli.ts';
import {
  argumentsOf,
  asCount,
  asObject,
  asText,
  jsonLines,
  type JsonObject,
} from '../installed/log-lines.ts';

const promptType = 'slipway-prompt';

/** A first line for its output, in the shape of its own. */
export function promptEvent(text: string): JsonObject {
  return { type: promptType, text };
}

interface Call {
  readonly timestamp: string | null;
  readonly texts: string[];
  readonly thoughts: string[];
  readonly toolCalls: AtifToolCall[];
  readonly results: AtifObservationResult[];
  usage: (CliTokens & { readonly reasoning: number; readonly cacheWrite: number }) | null;
  finish: string | null;
}

export async function readOpencodeLog(dir: string): Promise<CliRecord | null> {
  const prompts: NewStep[] = [];
  const calls = new Map<string, Call>();
  let sessionId: string | null = null;
  for await (const event of jsonLines(path.join(dir, 'opencode.txt'))) {
    const text = asText(event['text']);
    // Once, at the beginning: what the program prints later is not ours.
    if (event['type'] === promptType && text !== null && prompts.length + calls.size === 0)
      prompts.push({ source: 'user', message: text });
    const part = asObject(event['part']);
    const messageId = asText(part?.['messageID']);
    if (part === null || messageId === null) continue;
    sessionId ??= asText(event['sessionID']);
    const call = calls.get(messageId) ?? newCall(event);
    calls.set(messageId, call);
    addPart(call, event['type'], part);
  }
  if (sessionId === null) return null;
  const found = [...calls.values()];
  const sum = (of: (usage: CliTokens) => number): number =>
    found.reduce((total, { usage }) => total + (usage === null ? 0 : of(usage)), 0);
  return {
    sessionId,
    agent: { version: null },
    steps: [...prompts, ...found.map(stepOf)],
    tokens: {
      prompt: sum(({ prompt }) => prompt),
      completion: sum(({ completion }) => completion),
      cached: sum(({ cached }) => cached),
    },
  };
}

function newCall(event: JsonObject): Call {
  const time = event['timestamp'];
  const isTime = typeof time === 'number' && Number.isFinite(time) && Math.abs(time) < 8.64e15;
  return {
    timestamp: isTime ? new Date(time).toISOString() : null,
    ...{ texts: [], thoughts: [], toolCalls: [], results: [], usage: null, finish: null },
  };
}

function addPart(call: Call, type: unknown, part: JsonObject): void {
  switch (type) {
    case 'text':
      call.texts.push(asText(part['text']) ?? '');
      break;
    case 'reasoning':
      call.thoughts.push(asText(part['text']) ?? '');
      break;
    case 'tool_use':
      addToolCall(call, part);
      break;
    case 'step_finish':
      call.usage = usageOf(asObject(part['tokens']));
      call.finish = asText(part['reason']);
      break;
    default:
      break;
  }
}

function addToolCall({ toolCalls, results }: Call, part: JsonObject): void {
  const id = asText(part['callID']) ?? '';
  const state = asObject(part['state']);
  toolCalls.push({
    tool_call_id: id,
    function_name: asText(part['tool']) ?? '',
    arguments: argumentsOf(state?.['input']),
  });
  const error = asText(state?.['error']);
  const output = asText(state?.['output']) ?? (error === null ? null : `[error] ${error}`);
  if (output !== null) results.push({ source_call_id: id, content: output });
}

function stepOf({ timestamp, texts, thoughts, toolCalls, results, usage, finish }: Call): NewStep {
  return {
    source: 'agent',
    ...(timestamp !== null && { timestamp }),
    message: texts.join('\n\n'),
    ...(thoughts.length > 0 && { reasoning_content: thoughts.join('\n\n') }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(results.length > 0 && { observation: { results } }),
    ...(usage !== null && {
      metrics: {
        prompt_tokens: usage.prompt,
        completion_tokens: usage.completion,
        cached_tokens: usage.cached,
        extra: {
          ...(finish !== null && { finish_reason: finish }),
          ...(usage.reasoning > 0 && { reasoning_tokens: usage.reasoning }),
          ...(usage.cacheWrite > 0 && { cache_write_tokens: usage.cacheWrite }),
        },
      },
    }),
    llm_call_count: 1,
  };
}

/** It counts what was cached apart, and so it does what was thought. */
function usageOf(tokens: JsonObject | null): Call['usage'] {
  const cache = asObject(tokens?.['cache']);
  const cached = asCount(cache?.['read']);
  const cacheWrite = asCount(cache?.['write']);
  const reasoning = asCount(tokens?.['reasoning']);
  return {
    prompt: asCount(tokens?.['input']) + cached + cacheWrite,
    completion: asCount(tokens?.['output']) + reasoning,
    ...{ cached, cacheWrite, reasoning },
  };
}
