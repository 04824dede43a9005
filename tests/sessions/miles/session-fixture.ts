/** The session routes behind a plain server, and an engine before which nothing is made up: it answers what the test says, in ids of the toy family. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../src/core/clock.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import {
  SessionServer,
  type SessionServerParts,
} from '../../../src/gateway/sessions/session-server.ts';
import { SessionUpstream } from '../../../src/gateway/sessions/session-upstream.ts';
import { strictMatcher } from '../../../src/sessions/miles/message-matcher.ts';
import type { SessionRules } from '../../../src/sessions/miles/miles-session.ts';
import { noReplay } from '../../../src/sessions/miles/replay.ts';
import { defaultPostprocess, dropRetries } from '../../../src/sessions/miles/sample-hooks.ts';
import { SessionStore } from '../../../src/sessions/miles/session-store.ts';
import { bytesOf, toyCodec, toyIds } from './toy-codec.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface EngineRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface EngineAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Script = (request: EngineRequest, at: number) => EngineAnswer | Promise<EngineAnswer>;

export interface TurnScript {
  readonly text?: string;
  readonly finish?: string;
  /** In place of those of the text and the end. */
  readonly ids?: readonly number[];
  readonly logprobs?: readonly number[];
  readonly message?: Fields;
  /** Over the fields of `meta_info`; undefined takes one away. */
  readonly meta?: Fields;
  readonly choice?: Fields;
  readonly reply?: Fields;
}

/** An answer of SGLang to a chat request with ids. */
export function turnAnswer(turn: TurnScript = {}): EngineAnswer {
  const { text = 'ok', finish = 'stop' } = turn;
  const ids = turn.ids ?? [...bytesOf(text), ...(finish === 'length' ? [] : [toyIds.end])];
  const logprobs = turn.logprobs ?? ids.map((_, at) => -(at + 1) / 8);
  return {
    headers: { 'content-type': 'application/json', server: 'uvicorn', 'x-engine': 'toy' },
    body: JSON.stringify({
      ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_700_000_000, model: 'toy' },
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: text, ...turn.message },
          finish_reason: finish,
          meta_info: {
            id: 'r1',
            output_token_logprobs: ids.map((id, at) => [logprobs[at], id, null]),
            completion_tokens: ids.length,
            ...{ prompt_tokens: 7, cached_tokens: 2, weight_version: 'v3' },
            ...turn.meta,
          },
          ...turn.choice,
        },
      ],
      usage: { prompt_tokens: 7, completion_tokens: ids.length, total_tokens: 7 + ids.length },
      ...turn.reply,
    }),
  };
}

export class ScriptedEngine {
  readonly requests: EngineRequest[] = [];
  script: Script = () => turnAnswer();
  running = 0;
  mostRunning = 0;

  /** One answer after the other; the last one stays. */
  says(...turns: readonly TurnScript[]): void {
    const from = this.requests.length;
    this.script = (_, at) => turnAnswer(turns[Math.min(at - from, turns.length - 1)]);
  }

  body(at: number): Fields {
    return JSON.parse(this.requests.at(at)?.text ?? '{}') as Fields;
  }

  async answer(request: EngineRequest): Promise<EngineAnswer> {
    this.requests.push(request);
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      return await this.script(request, this.requests.length - 1);
    } finally {
      this.running -= 1;
    }
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Fields;
  readonly bytes: Buffer;
}

export interface SessionFixtureOptions extends Partial<SessionRules> {
  readonly clock?: Clock;
  readonly maxIdleMs?: number | null;
  readonly maxBytes?: number;
  readonly access?: SessionServerParts['access'];
  readonly key?: string | null;
  readonly hidesCallers?: boolean;
  readonly engineUrl?: string;
}

export class SessionFixture implements AsyncDisposable {
  readonly engine = new ScriptedEngine();
  readonly url: string;
  readonly server: SessionServer;
  readonly store: SessionStore;
  readonly #servers: readonly Server[];

  private constructor(parts: {
    readonly url: string;
    readonly engine: ScriptedEngine;
    readonly server: SessionServer;
    readonly store: SessionStore;
    readonly servers: readonly Server[];
  }) {
    this.engine = parts.engine;
    this.url = parts.url;
    this.server = parts.server;
    this.store = parts.store;
    this.#servers = parts.servers;
  }

  static async start(options: SessionFixtureOptions = {}): Promise<SessionFixture> {
    const engine = new ScriptedEngine();
    const engineServer = createServer((incoming, response) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const { method = '', url = '', headers } = incoming;
        const text = Buffer.concat(chunks).toString();
        void engine.answer({ method, url, headers, text }).then(({ status = 200, ...answer }) => {
          response.writeHead(status, answer.headers).end(answer.body);
        });
      });
    });
    const { clock = systemClock, maxIdleMs = null, access = () => null, engineUrl } = options;
    const { key = null, hidesCallers = false, maxBytes = 2 ** 30, ...rules } = options;
    let seconds = 1_700_000_000;
    const store = new SessionStore({
      ...{ clock, maxIdleMs, maxBytes },
      rules: {
        ...{ version: 'v1', codec: toyCodec(), matches: strictMatcher, templateVariables: {} },
        picker: { name: 'drop_retries', pick: dropRetries },
        postprocessor: { name: 'default_postprocess', process: defaultPostprocess },
        ...{ maxNodes: 1_024, logger: silentLogger, nowS: () => (seconds += 1) },
        replay: noReplay,
        ...rules,
      },
    });
    const upstream = new SessionUpstream({
      url: engineUrl ?? (await listening(engineServer)),
      ...{ key, hidesCallers, timeoutMs: 20_000 },
    });
    const parts = { store, upstream, access, logger: silentLogger, bodyBytes: 2 ** 20 };
    const server = new SessionServer(parts);
    const front = createServer((request, response) => {
      if (!server.handle(request, response)) response.writeHead(404).end();
    });
    const url = await listening(front);
    return new SessionFixture({ url, engine, server, store, servers: [front, engineServer] });
  }

  async call(
    method: string,
    path: string,
    options: {
      readonly body?: unknown;
      readonly raw?: string;
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<Answer> {
    const { body, headers = {} } = options;
    const raw = options.raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(this.url + path, {
      ...{ method, headers },
      ...(raw !== undefined && { body: raw }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = bytes.toString();
    const { status } = response;
    return { status, headers: response.headers, text, bytes, json: jsonOf(text) };
  }

  async newSession(): Promise<string> {
    const { json } = await this.call('POST', '/sessions', { body: {} });
    return String(json['session_id']);
  }

  chat(id: string, messages: readonly Fields[], more: Fields = {}): Promise<Answer> {
    const body = { model: 'toy', messages, ...more };
    return this.call('POST', `/sessions/${id}/v1/chat/completions`, { body });
  }

  /** `GET /sessions/{id}`. */
  async view(
    id: string,
  ): Promise<{ readonly records: readonly Fields[]; readonly metadata: Fields }> {
    const { json } = await this.call('GET', `/sessions/${id}`);
    return json as unknown as { records: readonly Fields[]; metadata: Fields };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
  }
}

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function jsonOf(text: string): Fields {
  try {
    return JSON.parse(text) as Fields;
  } catch {
    return {};
  }
}

export const user = (content: string): Fields => ({ role: 'user', content });
export const said = (content = 'ok'): Fields => ({ role: 'assistant', content });
export const result = (content: string): Fields => ({ role: 'tool', content, tool_call_id: 'c1' });
