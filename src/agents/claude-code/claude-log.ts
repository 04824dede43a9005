/**
 * The log that Claude Code keeps of a session, and those of its subagents, as steps: what came under one message id is one call of the model. Its
 * `requestId` is the id under which the gateway knows the call.
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
  objectsOf,
  type JsonObject,
} from '../installed/log-lines.ts';

interface Message {
  readonly id: string;
  readonly first: JsonObject;
  readonly texts: string[];
  readonly reasoning: string[];
  readonly toolCalls: AtifToolCall[];
  readonly results: AtifObservationResult[];
  usage: JsonObject | null;
  stopReason: string | null;
}

/** null without a log, and where several projects left one: which is the run's cannot be told. */
export async function readClaudeLog(dir: string): Promise<CliRecord | null> {
  const files = await logFiles(path.join(dir, 'sessions', 'projects'));
  if (files.length === 0) return null;
  const lines: JsonObject[] = [];
  const seen = new Set<string>();
  for (const file of files)
    for await (const line of jsonLines(file)) {
      const uuid = asText(line['uuid']);
      if (line['type'] !== 'assistant' && line['type'] !== 'user') continue;
      if (uuid !== null && seen.has(uuid)) continue;
      if (uuid !== null) seen.add(uuid);
      lines.push(line);
    }
  const timeOf = (line: JsonObject): string => asText(line['timestamp']) ?? '';
  lines.sort((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : 0));
  const session = new ClaudeSession();
  for (const line of lines) session.take(line);
  return session.record(lines, path.basename(files[0] ?? '', '.jsonl'));
}

async function logFiles(projects: string): Promise<readonly string[]> {
  const entries = await readdir(projects, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.jsonl'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
  const folders = new Set(files.map((file) => path.relative(projects, file).split(path.sep)[0]));
  return folders.size === 1 ? files : [];
}

class ClaudeSession {
  readonly #parts: (NewStep | Message)[] = [];
  readonly #messages = new Map<string, Message>();
  readonly #answered = new Set<string>();
  #model: string | null = null;

  take(line: JsonObject): void {
    const message = asObject(line['message']);
    if (message === null) return;
    if (line['type'] === 'assistant') this.#assistant(line, message);
    else this.#user(line, message);
  }

  record(lines: readonly JsonObject[], fallbackId: string): CliRecord {
    const messages = [...this.#messages.values()];
    const sum = (of: (usage: JsonObject) => number): number =>
      messages.reduce((total, { usage }) => total + (usage === null ? 0 : of(usage)), 0);
    const first = (name: string): string | null =>
      asText(lines.find((line) => asText(line[name]) !== null)?.[name]);
    const all = (name: string): readonly string[] => [
      ...new Set(lines.flatMap((line) => asText(line[name]) ?? [])),
    ];
    const extra = { cwds: all('cwd'), git_branches: all('gitBranch'), agent_ids: all('agentId') };
    return {
      sessionId: first('sessionId') ?? fallbackId,
      agent: {
        version: first('version'),
        extra: Object.fromEntries(Object.entries(extra).filter(([, found]) => found.length > 0)),
      },
      steps: this.#parts.map((part) => ('toolCalls' in part ? callStep(part, this.#model) : part)),
      tokens: {
        prompt: sum(promptTokens),
        completion: sum((usage) => asCount(usage['output_tokens'])),
        cached: sum((usage) => asCount(usage['cache_read_input_tokens'])),
      },
    };
  }

  #assistant(line: JsonObject, message: JsonObject): void {
    const id = asText(message['id']) ?? asText(line['uuid']) ?? `${this.#parts.length}`;
    let known = this.#messages.get(id);
    if (known === undefined) {
      known = {
        ...{ id, first: line, usage: null, stopReason: null },
        ...{ texts: [], reasoning: [], toolCalls: [], results: [] },
      };
      this.#messages.set(id, known);
      this.#parts.push(known);
    }
    if (line['isSidechain'] !== true) this.#model ??= asText(message['model']);
    known.usage = asObject(message['usage']) ?? known.usage;
    known.stopReason = asText(message['stop_reason']) ?? known.stopReason;
    for (const block of objectsOf(message['content'])) addBlock(known, block);
  }

  #user(line: JsonObject, message: JsonObject): void {
    const { content } = message;
    const blocks = objectsOf(content);
    const results = blocks.filter(({ type }) => type === 'tool_result');
    for (const result of results) this.#result(result, results.length === 1 ? line : null);
    const text =
      asText(content) ??
      blocks
        .filter(({ type }) => type === 'text')
        .map((block) => asText(block['text']) ?? '')
        .join('\n\n');
    if (text.trim() === '') return;
    const timestamp = asText(line['timestamp']);
    this.#parts.push({
      source: 'user',
      message: text,
      ...(timestamp !== null && { timestamp }),
      ...(line['isSidechain'] === true && { extra: { is_sidechain: true } }),
    });
  }

  #result(block: JsonObject, line: JsonObject | null): void {
    const id = asText(block['tool_use_id']);
    if (id === null || this.#answered.has(id)) return;
    const owner = [...this.#messages.values()].findLast(({ toolCalls }) =>
      toolCalls.some((call) => call.tool_call_id === id),
    );
    if (owner === undefined) return;
    this.#answered.add(id);
    owner.results.push({ source_call_id: id, content: resultText(block, line) });
  }
}

function addBlock(message: Message, block: JsonObject): void {
  switch (block['type']) {
    case 'text':
      if ((asText(block['text']) ?? '') !== '') message.texts.push(asText(block['text']) ?? '');
      return;
    case 'thinking':
      if ((asText(block['thinking']) ?? '') !== '')
        message.reasoning.push(asText(block['thinking']) ?? '');
      return;
    case 'tool_use':
      message.toolCalls.push({
        tool_call_id: asText(block['id']) ?? '',
        function_name: asText(block['name']) ?? '',
        arguments: argumentsOf(block['input']),
      });
      return;
    default:
      return; // what is encrypted says nothing
  }
}

function callStep(message: Message, model: string | null): NewStep {
  const { first, usage, reasoning, toolCalls, results, stopReason } = message;
  const timestamp = asText(first['timestamp']);
  const requestId = asText(first['requestId']);
  const named = asText(asObject(first['message'])?.['model']) ?? model;
  return {
    source: 'agent',
    ...(timestamp !== null && { timestamp }),
    ...(named !== null && { model_name: named }),
    message: message.texts.join('\n\n'),
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join('\n\n') }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(results.length > 0 && { observation: { results } }),
    ...(usage !== null && {
      metrics: {
        prompt_tokens: promptTokens(usage),
        completion_tokens: asCount(usage['output_tokens']),
        cached_tokens: asCount(usage['cache_read_input_tokens']),
        ...(requestId !== null && { extra: { response_id: message.id } }),
      },
    }),
    llm_call_count: 1,
    extra: {
      ...(stopReason !== null && { stop_reason: stopReason }),
      ...(requestId !== null && { requestId }),
      ...(first['isSidechain'] === true && { is_sidechain: true }),
    },
  };
}

/** Messages count what was cached apart. */
function promptTokens(usage: JsonObject): number {
  return ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] //
    .reduce((sum, name) => sum + asCount(usage[name]), 0);
}

/** The text of the result, and what the log knows beside it; that belongs to a line with one result only. */
function resultText(block: JsonObject, line: JsonObject | null): string {
  const { content } = block;
  const text =
    asText(content) ??
    objectsOf(content)
      .map((part) => asText(part['text']) ?? `[${asText(part['type']) ?? 'part'}]`)
      .join('\n\n');
  const seen = asObject(line?.['toolUseResult']);
  const stderr = asText(seen?.['stderr']) ?? '';
  return [
    text,
    ...(stderr !== '' && !text.includes(stderr) ? [`[stderr]\n${stderr}`] : []),
    ...(seen?.['interrupted'] === true ? ['[interrupted]'] : []),
    ...(block['is_error'] === true ? ['[error] tool reported failure'] : []),
  ].join('\n\n');
}
