/** Clients that hold a conversation in each dialect, streamed or not: they send back what they got, as agents do, and answer each call of a tool. */
import { once } from 'node:events';
import { request, type Agent, type IncomingMessage } from 'node:http';
import type { CallDialect } from '../../../src/gateway/capture/call-capture.ts';
import { AddedUp } from '../messages/added-up.ts';

type Json = Readonly<Record<string, unknown>>;

export interface TalkOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly agent: Agent;
  readonly item: number;
  readonly turns: number;
  readonly isStreaming: (turn: number) => boolean;
  /** Hears of every body that came, as text. */
  readonly onBody: (body: string) => void;
}

const parameters = { type: 'object', properties: { command: { type: 'string' } } };
const nextTurn = (turn: number): string => `go on ${turn}`;

export async function talk(dialect: CallDialect, options: TalkOptions): Promise<void> {
  const speak = { chat, responses, messages }[dialect];
  const history: Json[] = [{ role: 'user', content: `Say corpus item ${options.item}.` }];
  for (let turn = 0; turn < options.turns; turn += 1)
    history.push(...(await speak(history, { ...options, turn })));
}

type Turn = TalkOptions & { readonly turn: number };

async function chat(history: readonly Json[], options: Turn): Promise<readonly Json[]> {
  const tools = [{ type: 'function', function: { name: 'run', parameters } }];
  const stream = options.isStreaming(options.turn);
  const body = await post('/chat/completions', { model: 'm', messages: history, tools, stream }, options); // prettier-ignore
  const message = stream ? chatMessage(eventsOf(body)) : onlyChoice(body);
  const calls = (message['tool_calls'] ?? []) as readonly { readonly id: string }[];
  const { content, reasoning_content: reasoning, tool_calls: toolCalls } = message;
  return [
    {
      ...{ role: 'assistant', content: content ?? null },
      ...((reasoning ?? null) !== null && { reasoning_content: reasoning }),
      ...((toolCalls ?? null) !== null && { tool_calls: toolCalls }),
    },
    ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'done' })),
    ...(calls.length === 0 ? [{ role: 'user', content: nextTurn(options.turn) }] : []),
  ];
}

async function messages(history: readonly Json[], options: Turn): Promise<readonly Json[]> {
  const stream = options.isStreaming(options.turn);
  const tools = [{ name: 'run', input_schema: parameters }];
  const given = { model: 'm', max_tokens: 4_000, messages: history, tools, stream };
  const body = await post('/messages', given, options);
  const { content } = stream ? addedUpMessage(body) : (JSON.parse(body) as Json);
  const blocks = content as readonly { readonly type: string; readonly id?: string }[];
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const answer =
    calls.length === 0
      ? nextTurn(options.turn)
      : calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'done' }));
  return [
    { role: 'assistant', content: blocks },
    { role: 'user', content: answer },
  ];
}

async function responses(history: readonly Json[], options: Turn): Promise<readonly Json[]> {
  const stream = options.isStreaming(options.turn);
  const tools = [{ type: 'function', name: 'run', parameters }];
  const body = await post('/responses', { model: 'm', input: history, tools, stream, store: false }, options); // prettier-ignore
  const last = stream ? (eventsOf(body).at(-1)?.['response'] as Json) : (JSON.parse(body) as Json);
  const output = last['output'] as readonly { readonly type: string; readonly call_id?: string }[];
  const calls = output.filter(({ type }) => type === 'function_call');
  return [
    ...output.map((item) => ({ ...item })),
    ...calls.map(({ call_id: id }) => ({
      ...{ type: 'function_call_output', call_id: id, output: 'done' },
    })),
    ...(calls.length === 0 ? [{ role: 'user', content: nextTurn(options.turn) }] : []),
  ];
}

async function post(path: string, body: Json, options: Turn): Promise<string> {
  const { baseUrl, apiKey, agent, onBody } = options;
  const outgoing = request(`${baseUrl}${path}`, {
    ...{ method: 'POST', agent },
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
  });
  outgoing.end(JSON.stringify(body));
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
  const text = Buffer.concat(pieces).toString('utf8');
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${text}`);
  onBody(text);
  return text;
}

function eventsOf(body: string): readonly Json[] {
  return body
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Json);
}

function addedUpMessage(body: string): Json {
  const sum = new AddedUp();
  for (const data of eventsOf(body)) sum.add({ event: String(data['type']), data });
  if (sum.message === null) throw new Error(`a message did not end: ${body.slice(-300)}`);
  return sum.message;
}

interface ChatChoice {
  readonly delta: {
    readonly content?: string | null;
    readonly reasoning_content?: string | null;
    readonly tool_calls?: readonly {
      readonly index: number;
      readonly id?: string;
      readonly function: { readonly name?: string; readonly arguments?: string };
    }[];
  };
}

function chatMessage(events: readonly Json[]): Json {
  let [content, reasoning] = ['', ''];
  const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] =
    [];
  for (const event of events)
    for (const { delta } of event['choices'] as readonly ChatChoice[]) {
      content += delta.content ?? '';
      reasoning += delta.reasoning_content ?? '';
      for (const { index, id, function: called } of delta.tool_calls ?? []) {
        const call = (calls[index] ??= {
          ...{ id: id ?? '', type: 'function', function: { name: '', arguments: '' } },
        });
        call.function.name += called.name ?? '';
        call.function.arguments += called.arguments ?? '';
      }
    }
  return {
    content,
    reasoning_content: reasoning === '' ? null : reasoning,
    tool_calls: calls.length === 0 ? null : calls,
  };
}

function onlyChoice(body: string): Json {
  const { choices } = JSON.parse(body) as {
    readonly choices: readonly { readonly message: Json }[];
  };
  return choices[0]?.message ?? {};
}
