/**
 * The log that Qwen Code keeps of a session, as steps: an event of the assistant is one call of the model. The telemetry before it names the id of the
 * answer, under which the gateway knows the call.
 */
import { readdir } from 'node:fs/promises';
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
  objectsOf,
  type JsonObject,
} from '../installed/log-lines.ts';

interface Turn {
  readonly step: NewStep;
  readonly toolCalls: readonly AtifToolCall[];
  readonly results: AtifObservationResult[];
}

/** The newest log of the run. */
export async function readQwenLog(dir: string): Promise<CliRecord | null> {
  const root = path.join(dir, 'sessions');
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  const found: { readonly lines: readonly JsonObject[]; readonly name: string }[] = [];
  for (const entry of entries) {
    if (!entry.isFile() || !entry.name.endsWith('.jsonl')) continue;
    const lines: JsonObject[] = [];
    for await (const line of jsonLines(path.join(entry.parentPath, entry.name))) lines.push(line);
    if (lines.length > 0) found.push({ lines, name: path.basename(entry.name, '.jsonl') });
  }
  const begun = ({ lines }: { readonly lines: readonly JsonObject[] }): string =>
    asText(lines[0]?.['timestamp']) ?? '';
  const newest = found.toSorted((a, b) => (begun(a) < begun(b) ? -1 : 1)).at(-1);
  return newest === undefined ? null : recordOf(newest.lines, newest.name);
}

function recordOf(lines: readonly JsonObject[], fallbackId: string): CliRecord {
  const parts: (NewStep | Turn)[] = [];
  const tokens = { prompt: 0, completion: 0, cached: 0 };
  let responseId: string | null = null;
  for (const line of lines) {
    const said = partsOf(line);
    switch (line['type']) {
      case 'user':
        parts.push({ source: 'user', message: textOf(said), ...timeOf(line) });
        break;
      case 'system':
        responseId = answeredBy(line) ?? responseId;
        break;
      case 'assistant': {
        const usage = usageOf(line);
        parts.push(turnOf(line, { usage, responseId }));
        tokens.prompt += usage?.prompt ?? 0;
        tokens.completion += usage?.completion ?? 0;
        tokens.cached += usage?.cached ?? 0;
        responseId = null;
        break;
      }
      case 'tool_result':
        for (const part of said) addResult(parts, part);
        break;
      default:
        break;
    }
  }
  const first = lines[0] ?? {};
  const cwd = asText(first['cwd']);
  return {
    sessionId: asText(first['sessionId']) ?? fallbackId,
    agent: { version: asText(first['version']), extra: cwd === null ? null : { cwd } },
    steps: parts.map((part) =>
      'toolCalls' in part && part.results.length > 0
        ? { ...part.step, observation: { results: part.results } }
        : 'toolCalls' in part
          ? part.step
          : part,
    ),
    tokens,
  };
}

function turnOf(
  line: JsonObject,
  { usage, responseId }: { readonly usage: CliTokens | null; readonly responseId: string | null },
): Turn {
  const said = partsOf(line);
  const thoughts = textOf(said.filter(({ thought }) => thought === true));
  const toolCalls = said.flatMap(({ functionCall }) => {
    const call = asObject(functionCall);
    if (call === null) return [];
    return {
      tool_call_id: asText(call['id']) ?? '',
      function_name: asText(call['name']) ?? '',
      arguments: argumentsOf(call['args']),
    };
  });
  const model = asText(line['model']);
  const step: NewStep = {
    source: 'agent',
    ...timeOf(line),
    ...(model !== null && { model_name: model }),
    message: textOf(said.filter(({ thought }) => thought !== true)),
    ...(thoughts !== '' && { reasoning_content: thoughts }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(usage !== null && {
      metrics: {
        prompt_tokens: usage.prompt,
        completion_tokens: usage.completion,
        cached_tokens: usage.cached,
        ...(responseId !== null && { extra: { response_id: responseId } }),
      },
    }),
    llm_call_count: 1,
  };
  return { step, toolCalls, results: [] };
}

function addResult(parts: readonly (NewStep | Turn)[], part: JsonObject): void {
  const response = asObject(part['functionResponse']);
  const id = asText(response?.['id']);
  if (id === null) return;
  const owner = parts.findLast(
    (each): each is Turn =>
      'toolCalls' in each && each.toolCalls.some((call) => call.tool_call_id === id),
  );
  const said = asObject(response?.['response']);
  const error = asText(said?.['error']);
  owner?.results.push({
    source_call_id: id,
    content: asText(said?.['output']) ?? (error === null ? '' : `[error] ${error}`),
  });
}

function answeredBy(line: JsonObject): string | null {
  const event = asObject(asObject(line['systemPayload'])?.['uiEvent']);
  return event?.['event.name'] === 'qwen-code.api_response' ? asText(event['response_id']) : null;
}

function usageOf(line: JsonObject): CliTokens | null {
  const usage = asObject(line['usageMetadata']);
  if (usage === null) return null;
  return {
    prompt: asCount(usage['promptTokenCount']),
    completion: asCount(usage['candidatesTokenCount']),
    cached: asCount(usage['cachedContentTokenCount']),
  };
}

function partsOf(line: JsonObject): readonly JsonObject[] {
  return objectsOf(asObject(line['message'])?.['parts']);
}

function textOf(parts: readonly JsonObject[]): string {
  return parts.map(({ text }) => asText(text) ?? '').join('');
}

function timeOf(line: JsonObject): { readonly timestamp?: string } {
  const timestamp = asText(line['timestamp']);
  return timestamp === null ? {} : { timestamp };
}
