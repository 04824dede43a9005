/**
 * A conversation in the shape of OpenAI's chat as steps of a trajectory. Nothing is thrown away: what a step has no place for stands in its `extra`. A
 * tool's answer belongs to the agent's step right before it; without one it is a step of the system.
 */
import type { AtifMetrics, AtifStep, AtifToolCall } from '../wire/atif/atif.ts';

type Message = Readonly<Record<string, unknown>>;
type Step = { -readonly [Key in keyof AtifStep]: AtifStep[Key] };

export function stepsOfChat(messages: readonly Message[]): readonly AtifStep[] {
  const steps: Step[] = [];
  let agent: Step | null = null;
  for (const message of messages) {
    const role = text(message['role']) ?? '';
    if (role === 'tool' || role === 'function') {
      if (agent !== null) addObservation(agent, message);
      else steps.push(orphan(message, steps.length + 1));
      continue;
    }
    const step = role === 'assistant' ? agentStep(message) : otherStep(message, role);
    step.step_id = steps.length + 1;
    steps.push(step);
    agent = role === 'assistant' ? step : null;
  }
  return steps;
}

function agentStep(message: Message): Step {
  const response = record(record(message['extra'])?.['response']);
  const model = text(message['model']) ?? text(message['model_name']) ?? text(response?.['model']);
  const usage = usageOf(record(message['usage']) ?? record(response?.['usage']));
  const calls = toolCalls(message['tool_calls']);
  const reasoning = reasoningOf(message);
  return {
    ...common(message, 'agent'),
    ...(reasoning !== null && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(model !== null && { model_name: model }),
    ...(usage !== null && { metrics: usage, llm_call_count: 1 }),
  };
}

/** Reasoning and tool calls have no place in a step that is not the agent's. */
function otherStep(message: Message, role: string): Step {
  const isSystem = role === 'system' || role === 'developer';
  const known = isSystem || role === 'user';
  const reasoning = reasoningOf(message);
  const extra = {
    ...(!known && { original_role: role }),
    ...(reasoning !== null && { reasoning_content: reasoning }),
    ...(message['tool_calls'] != null && { tool_calls: message['tool_calls'] }),
  };
  return {
    ...common(message, isSystem ? 'system' : 'user'),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}

function common(message: Message, source: AtifStep['source']): Step {
  const timestamp = timestampOf(message);
  return {
    step_id: 0,
    ...(timestamp !== null && { timestamp }),
    source,
    message: contentText(message['content']),
  };
}

function addObservation(step: Step, message: Message): void {
  const id = text(message['tool_call_id']);
  const isKnown = step.tool_calls?.some(({ tool_call_id }) => tool_call_id === id) === true;
  const result = {
    ...(isKnown && id !== null && { source_call_id: id }),
    content: contentText(message['content']),
    ...(!isKnown && id !== null && { extra: { tool_call_id: id } }),
  };
  step.observation = { results: [...(step.observation?.results ?? []), result] };
}

function orphan(message: Message, stepId: number): Step {
  const id = text(message['tool_call_id']);
  const content = contentText(message['content']);
  return {
    step_id: stepId,
    source: 'system',
    message: '',
    observation: { results: [{ content, ...(id !== null && { extra: { tool_call_id: id } }) }] },
    extra: { original_role: text(message['role']) },
  };
}

function toolCalls(value: unknown): AtifToolCall[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown, index) => {
    const call = record(entry);
    if (call === null) return [];
    const called = record(call['function']) ?? call;
    return [
      {
        tool_call_id: text(call['id']) ?? `call_${index}`,
        function_name: text(called['name']) ?? 'unknown',
        arguments: argumentsOf(called['arguments']),
      },
    ];
  });
}

function argumentsOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'string') return record(value) ?? {};
  if (value === '') return {};
  try {
    return record(JSON.parse(value)) ?? { _raw: value };
  } catch {
    return { _raw: value };
  }
}

function reasoningOf(message: Message): string | null {
  const value = message['reasoning_content'] ?? message['reasoning'];
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function contentText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  const parts = Array.isArray(value) ? value.map(textPart) : [null];
  return parts.some((part) => part === null) ? JSON.stringify(value) : parts.join('\n');
}

function textPart(part: unknown): string | null {
  const fields = record(part);
  return fields?.['type'] === 'text' ? text(fields['text']) : null;
}

/** Names of chat completions first, then those of responses; a zero that is there counts. */
function usageOf(usage: Message | null): AtifMetrics | null {
  if (usage === null) return null;
  const prompt = count(usage['prompt_tokens']) ?? count(usage['input_tokens']);
  const completion = count(usage['completion_tokens']) ?? count(usage['output_tokens']);
  const promptDetails =
    record(usage['prompt_tokens_details']) ?? record(usage['input_tokens_details']);
  const outputDetails =
    record(usage['completion_tokens_details']) ?? record(usage['output_tokens_details']);
  const cached = count(usage['cached_tokens']) ?? count(promptDetails?.['cached_tokens']);
  const cost = usage['cost_usd'];
  const extra = {
    ...(promptDetails !== null && { prompt_tokens_details: promptDetails }),
    ...(outputDetails !== null && { completion_tokens_details: outputDetails }),
  };
  const metrics = {
    ...(prompt !== null && { prompt_tokens: prompt }),
    ...(completion !== null && { completion_tokens: completion }),
    ...(cached !== null && { cached_tokens: cached }),
    ...(typeof cost === 'number' && Number.isFinite(cost) && { cost_usd: cost }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
  return Object.keys(metrics).length === 0 ? null : metrics;
}

/** The first that is a time: seconds since 1970 as a number, or ISO 8601. */
function timestampOf(message: Message): string | null {
  const places = [
    message['created_at'],
    message['timestamp'],
    message['completed_at'],
    record(message['extra'])?.['timestamp'],
  ];
  for (const place of places) {
    if (typeof place === 'string' && !/^\d{4}-\d\d-\d\d/.test(place)) continue;
    if (typeof place !== 'string' && typeof place !== 'number') continue;
    const time = new Date(typeof place === 'number' ? place * 1000 : place);
    if (!Number.isNaN(time.getTime())) return time.toISOString();
  }
  return null;
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function record(value: unknown): Message | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Message)
    : null;
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
