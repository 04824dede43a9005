/**
 * The trajectory that mini-swe-agent writes after each turn, as steps: the messages of the conversation, with the whole answer of the model beside each that came
 * of one. An answer without a proper call is not among the messages: it stands beside the complaint that the model got for it.
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
  jsonFile,
  objectsOf,
  type JsonObject,
} from '../installed/log-lines.ts';

/** Where those who read folders of trials look for it. */
export const miniLogName = 'mini-swe-agent.trajectory.json';

interface Turn {
  readonly step: NewStep;
  readonly results: AtifObservationResult[];
  readonly tokens: CliTokens;
}

export async function readMiniLog(dir: string): Promise<CliRecord | null> {
  const log = await jsonFile(path.join(dir, miniLogName));
  return log === null ? null : recordOf(log);
}

function recordOf(log: JsonObject): CliRecord {
  const parts: (NewStep | Turn)[] = [];
  for (const message of objectsOf(log['messages'])) {
    const text = textOf(message['content']);
    const { response } = extraOf(message);
    switch (message['role']) {
      case 'system':
        parts.push({ source: 'system', message: text });
        break;
      case 'assistant':
        parts.push(turnOf(message, asObject(response) ?? {}));
        break;
      case 'tool':
        addResult(parts, { source_call_id: asText(message['tool_call_id']), content: text });
        break;
      case 'user': {
        const answer = asObject(response);
        if (answer !== null) parts.push(turnOf(answerIn(answer, message), answer));
        if (parts.some((part) => 'results' in part)) addResult(parts, { content: text });
        else parts.push({ source: 'user', message: text });
        break;
      }
      default:
        break; // how it ended, which the last call has told
    }
  }
  const turns = parts.filter((part) => 'results' in part);
  const { mini_version: version, config } = asObject(log['info']) ?? {};
  const agentConfig = asObject(asObject(config)?.['agent']);
  const sum = (of: (tokens: CliTokens) => number): number =>
    turns.reduce((total, turn) => total + of(turn.tokens), 0);
  return {
    sessionId: turns.map(idOf).find((id) => id !== null) ?? 'mini-swe-agent',
    agent: {
      version: asText(version),
      extra: {
        original_format: asText(log['trajectory_format']),
        ...(agentConfig !== null && { agent_config: agentConfig }),
      },
    },
    steps: parts.map((part) =>
      !('results' in part)
        ? part
        : part.results.length === 0
          ? part.step
          : { ...part.step, observation: { results: part.results } },
    ),
    tokens: {
      prompt: sum(({ prompt }) => prompt),
      completion: sum(({ completion }) => completion),
      cached: sum(({ cached }) => cached),
    },
  };
}

function turnOf(message: JsonObject, response: JsonObject): Turn {
  const usage = asObject(response['usage']);
  const tokens = {
    prompt: asCount(usage?.['prompt_tokens']),
    completion: asCount(usage?.['completion_tokens']),
    cached: asCount(asObject(usage?.['prompt_tokens_details'])?.['cached_tokens']),
  };
  const toolCalls = objectsOf(message['tool_calls']).map((call): AtifToolCall => {
    const called = asObject(call['function']);
    return {
      tool_call_id: asText(call['id']) ?? '',
      function_name: asText(called?.['name']) ?? '',
      arguments: argumentsOf(called?.['arguments']),
    };
  });
  const reasoning = asText(message['reasoning_content']) ?? '';
  const model = asText(response['model']);
  const id = asText(response['id']);
  const step: NewStep = {
    source: 'agent',
    ...timeOf(message),
    ...(model !== null && { model_name: model }),
    message: textOf(message['content']),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(usage !== null && {
      metrics: {
        prompt_tokens: tokens.prompt,
        completion_tokens: tokens.completion,
        cached_tokens: tokens.cached,
        ...(id !== null && { extra: { response_id: id } }),
      },
    }),
    llm_call_count: 1,
  };
  return { step, results: [], tokens };
}

/** Of several calls that share an id, as small models make them, each gets what comes in its turn. */
function addResult(parts: readonly (NewStep | Turn)[], result: AtifObservationResult): void {
  parts.findLast((part) => 'results' in part)?.results.push(result);
}

function answerIn(response: JsonObject, complaint: JsonObject): JsonObject {
  const message = asObject(objectsOf(response['choices'])[0]?.['message']) ?? {};
  return { ...message, extra: complaint['extra'] };
}

function idOf({ step }: Turn): string | null {
  return asText(step.metrics?.extra?.['response_id']);
}

function extraOf(message: JsonObject): JsonObject {
  return asObject(message['extra']) ?? {};
}

/** A text, or parts with texts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map(({ text }) => asText(text) ?? '')
    .join('');
}

function timeOf(message: JsonObject): { readonly timestamp?: string } {
  const { timestamp } = extraOf(message);
  if (typeof timestamp !== 'number' || !(timestamp > 0 && timestamp < 1e11)) return {};
  return { timestamp: new Date(timestamp * 1000).toISOString() };
}
