/**
 * The session routes that trainers on Miles call, before the framework as the gateway's own are: methods, headers and bytes are those that its clients know.
 * Whoever knows the id of a session, 128 random bits, may use it; making one and reaching through to the engine asks who calls.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import { isRolloutError, messageOf } from '../../core/errors.ts';
import { exactJson } from '../../core/exact-json.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import { readChatReply, streamedReply } from '../../sessions/miles/chat-reply.ts';
import { requestBody } from '../../sessions/miles/chat-request.ts';
import { refusal } from '../../sessions/miles/session-error.ts';
import type { SessionStore } from '../../sessions/miles/session-store.ts';
import { readSamplesRequest } from './samples-request.ts';
import { answerHeaders, type SessionUpstream } from './session-upstream.ts';

/** Why somebody may not; null = they may. */
export type SessionAccess = (
  request: IncomingMessage,
  keyInPath: string | null,
) => { readonly status: number; readonly message: string } | null;

export interface SessionServerParts {
  readonly store: SessionStore;
  readonly upstream: SessionUpstream;
  readonly access: SessionAccess;
  readonly logger: Logger;
  /** Of a request body. */
  readonly bodyBytes: number;
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Decoded; null = there is none in the path. */
  readonly id: string | null;
  /** Behind the id, with its slash and query; null = nothing is there. */
  readonly rest: string | null;
  readonly keyInPath: string | null;
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

const route = /^(?:\/k\/([^/?]+))?\/sessions(?:\/([^/?]+)(\/[^]*)?)?(?:\?[^]*)?$/;
const jsonType = { 'content-type': 'application/json' };

export class SessionServer {
  readonly #parts: SessionServerParts;

  constructor(parts: SessionServerParts) {
    this.#parts = parts;
  }

  get instanceId(): string {
    return this.#parts.store.instanceId;
  }

  /** False for a path that is not of sessions: it is not answered. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const found = route.exec(request.url ?? '');
    if (found === null) return false;
    const [, key, id, rest] = found;
    const link = new LinkedAbort([]);
    response.once('close', () => {
      if (!response.writableEnded) link.abort(new Error('the client has gone'));
    });
    const call: Call = {
      ...{ request, response, signal: link.signal, rest: rest ?? null },
      id: id === undefined ? null : decoded(id),
      keyInPath: key === undefined ? null : decoded(key),
    };
    void this.#answer(call)
      .catch((error: unknown) => this.#refuse(call, error))
      .finally(() => link[Symbol.dispose]());
    return true;
  }

  async close(): Promise<void> {
    await this.#parts.upstream.close();
  }

  async #answer(call: Call): Promise<void> {
    const { id, rest, request } = call;
    const method = request.method ?? '';
    if (id === null) await this.#create(call, method);
    else if (rest === null) this.#session(call, id, method);
    else {
      const path = rest.split('?', 1)[0];
      if (method === 'POST' && path === '/v1/chat/completions') await this.#chat(call, id, rest);
      else if (method === 'POST' && path === '/samples') await this.#samples(call, id);
      else if (!proxied.has(method)) wrongMethod(call, [...proxied]);
      else if (!this.#isRefused(call)) await this.#proxy(call, rest);
    }
  }

  /** Whatever the body says. */
  async #create(call: Call, method: string): Promise<void> {
    const { store, bodyBytes } = this.#parts;
    if (method !== 'POST') {
      wrongMethod(call, ['POST']);
      return;
    }
    if (this.#isRefused(call)) return;
    await readBody(call, bodyBytes);
    send(call, 200, jsonType, JSON.stringify({ session_id: store.create().id }));
  }

  #session(call: Call, id: string, method: string): void {
    const { store } = this.#parts;
    if (method === 'GET') send(call, 200, jsonType, store.get(id).document());
    else if (method === 'DELETE') {
      store.delete(id);
      send(call, 204, {}, '');
    } else wrongMethod(call, ['GET', 'DELETE']);
  }

  async #chat(call: Call, id: string, path: string): Promise<void> {
    const { store, upstream, logger, bodyBytes } = this.#parts;
    const { signal } = call;
    store.get(id);
    const body = await readBody(call, bodyBytes);
    const session = store.get(id);
    store.checkRoom();
    const request = session.read(body);
    const turn = session.turns.prepare(request);
    const { answer, text } = await store.during(session, async () => {
      const asked = {
        ...{ method: 'POST', path, headers: call.request.headers },
        extraHeaders: { 'x-smg-routing-key': id, ...jsonType },
        body: requestBody(turn.request.members, request.messagesText, turn.promptIds),
      };
      const answer = await upstream.ask(asked, signal);
      return { answer, text: await upstream.text(answer, signal) };
    });
    const headers = answerHeaders(answer.headers);
    if (answer.statusCode !== 200) {
      send(call, answer.statusCode, headers, compact(text));
      return;
    }
    const reply = readChatReply(text);
    if (!store.commit(session, turn, reply))
      logger.log('info', 'a turn was answered and not kept: its session has gone or moved on', {
        session: id,
      });
    if (request.isStreaming) send(call, 200, streamHeaders, streamedReply(reply));
    else send(call, 200, { ...headers, ...jsonType }, exactJson(reply.shown));
  }

  async #samples(call: Call, id: string): Promise<void> {
    const { store, bodyBytes } = this.#parts;
    store.get(id);
    const asked = readSamplesRequest(await readBody(call, bodyBytes));
    const bytes = store.get(id).samples(asked);
    send(call, 200, { 'content-type': 'application/octet-stream' }, bytes);
  }

  /** Whatever else is asked goes to the engine as it is. */
  async #proxy(call: Call, path: string): Promise<void> {
    const { request, response, signal } = call;
    const body = await readBody(call, this.#parts.bodyBytes);
    const answer = await this.#parts.upstream.ask(
      {
        ...{ method: request.method ?? 'GET', path, headers: request.headers },
        body: body.length === 0 ? null : body,
      },
      signal,
    );
    response.writeHead(answer.statusCode, { ...answerHeaders(answer.headers), ...ownHeaders });
    await pipeline(answer.body, response);
  }

  #isRefused(call: Call): boolean {
    const refused = this.#parts.access(call.request, call.keyInPath);
    if (refused !== null) send(call, refused.status, jsonType, errorBody(refused.message));
    return refused !== null;
  }

  #refuse(call: Call, error: unknown): void {
    if (call.signal.aborted || call.response.headersSent) {
      call.response.destroy();
      return;
    }
    const code: ErrorCode = isRolloutError(error) ? error.code : 'INTERNAL';
    const status = code === 'CONVERSATION_INVALID' ? 400 : errorRegistry[code].httpStatus;
    if (status === 500)
      this.#parts.logger.log('error', 'a session request failed', {
        ...{ code, error: messageOf(error), session: call.id },
        stack: error instanceof Error ? (error.stack ?? null) : null,
      });
    const message = code === 'INTERNAL' ? errorRegistry.INTERNAL.summary : messageOf(error);
    const named = {
      'x-slipway-error': code,
      ...(code === 'SESSION_MEMORY_FULL' && { 'retry-after': '5' }),
    };
    const isPlain = status === 422;
    const type = isPlain ? { 'content-type': 'text/plain; charset=utf-8' } : jsonType;
    send(call, status, { ...named, ...type }, isPlain ? message : errorBody(message));
  }
}

/** What the health of a listener says of its sessions. */
export function sessionIdentity(sessions: SessionServer | null): Readonly<Record<string, unknown>> {
  return sessions === null ? {} : { session_server_instance_id: sessions.instanceId };
}

const proxied = new Set(['GET', 'POST', 'PUT', 'DELETE', 'PATCH']);
const ownHeaders = { server: 'slipway' };
const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

function send(
  { response }: Call,
  status: number,
  headers: Readonly<Record<string, string | string[]>>,
  body: string | Buffer,
): void {
  const bytes = Buffer.from(body as string);
  const length = status === 204 ? {} : { 'content-length': bytes.length };
  response.writeHead(status, { ...headers, ...ownHeaders, ...length });
  response.end(bytes);
}

function wrongMethod(call: Call, allowed: readonly string[]): void {
  const headers = { ...jsonType, allow: allowed.join(', ') };
  send(call, 405, headers, JSON.stringify({ detail: 'Method Not Allowed' }));
}

const errorBody = (message: string): string => JSON.stringify({ error: message });

/** JSON without white space, anything else as it is. */
function compact(text: string): string {
  try {
    return exactJson(JSON.parse(text));
  } catch {
    return text;
  }
}

async function readBody({ request }: Call, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBytes) chunks.push(chunk);
  }
  if (size > maxBytes) throw refusal('BODY_TOO_LARGE', `the body is larger than ${maxBytes} bytes`);
  return Buffer.concat(chunks);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
