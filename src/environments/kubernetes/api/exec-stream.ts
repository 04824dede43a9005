/**
 * A program in a pod, over a WebSocket. Each message begins with the number of its channel: 0 input, 1 and 2 output, 3 the end of the program as a Status
 * document, 255 (version 5 only) the end of a channel. The server closes the socket behind the end.
 * https://kubernetes.io/blog/2024/08/20/websockets-transition/
 */
import { Writable } from 'node:stream';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket, type RawData } from 'ws';
import { z } from 'zod';
import { raceSignal } from '../../../core/race-signal.ts';
import type {
  AttachedProgram,
  AttachRequest,
  ProgramEnd,
} from '../../shared/inside/attached-program.ts';
import { apiErrorOf, queryOf, type ApiClient } from './api-client.ts';
import { ApiError } from './api-error.ts';

const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const;
const channels = { stdin: 0, stdout: 1, stderr: 2, end: 3, close: 255 } as const;
/** Frames of input; smaller than what any server in between takes as one message. */
const frameBytes = 32 * 1024;
const openMs = 30_000;
const defaultPingMs = 10_000;
/** Pings in a row without a sign of life. Counted, not timed: this process may have stood still itself. */
const maxSilentPings = 3;
const maxErrorBytes = 64 * 1024;

const endDocument = z.object({
  status: z.string().optional(),
  message: z.string().optional(),
  reason: z.string().optional(),
  details: z
    .object({
      causes: z.array(z.object({ reason: z.string(), message: z.string().default('') })).nullish(),
    })
    .nullish(),
});

export interface ExecPlace {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly pingMs?: number;
}

/** Starts a program. Rejects with an ApiError, a system error or the reason of `signal`. */
export async function attachExec(
  place: ExecPlace,
  request: AttachRequest,
  signal: AbortSignal,
): Promise<ExecStream> {
  const first = await connect(place, request, { isRefused: false, signal });
  if (first instanceof ExecStream) return first;
  const isUnknownUser = first.status === 401;
  const second = isUnknownUser ? await connect(place, request, { isRefused: true, signal }) : first;
  if (second instanceof ExecStream) return second;
  throw second;
}

async function connect(
  { client, namespace, pod, container, pingMs = defaultPingMs }: ExecPlace,
  request: AttachRequest,
  options: { readonly isRefused: boolean; readonly signal: AbortSignal },
): Promise<ExecStream | ApiError> {
  const { headers, tls } = await client.connection(options);
  const query = new URLSearchParams(
    request.argv.map((word): [string, string] => ['command', word]),
  );
  const base = `${client.access.server.replace(/^http/, 'ws')}/api/v1/namespaces/${namespace}/pods/${pod}/exec`;
  const flags = queryOf({ container, stdin: true, stdout: true, stderr: true, tty: false });
  const socket = new WebSocket(`${base}${flags}&${query.toString()}`, [...protocols], {
    ...tls,
    headers,
    handshakeTimeout: openMs,
    perMessageDeflate: false,
    maxPayload: 0,
  });
  // Before it opens: what comes at once must find its reader.
  const stream = new ExecStream(socket, request, pingMs);
  const refused = new Promise<ApiError>((resolve) => {
    socket.once(
      'unexpected-response',
      (_request, response) => void refusal(response).then(resolve),
    );
  });
  try {
    const opened = once(socket, 'open').then(() => null);
    const answer = await raceSignal(Promise.race([opened, refused]), options.signal);
    if (answer === null) return stream;
    stream.detach();
    return answer;
  } catch (error) {
    stream.detach();
    throw error;
  }
}

async function refusal(response: IncomingMessage): Promise<ApiError> {
  let text = '';
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      text += piece.toString('utf8');
      if (text.length > maxErrorBytes) break;
    }
  } catch {
    // cut short: what there is has to do
  }
  return apiErrorOf(response.statusCode ?? 500, text, response.headers['retry-after']);
}

export class ExecStream implements AttachedProgram {
  readonly stdin: Writable;
  readonly ended: Promise<ProgramEnd>;
  readonly #socket: WebSocket;
  readonly #onOutput: AttachRequest['onOutput'];
  readonly #heartbeat: NodeJS.Timeout;
  #silentPings = 0;
  #isPaused = false;
  #end: ProgramEnd | null = null;
  #cause: unknown = new Error('the connection was closed before the program ended');

  constructor(socket: WebSocket, request: AttachRequest, everyMs: number) {
    this.#socket = socket;
    this.#onOutput = request.onOutput;
    this.ended = new Promise((resolve) => {
      socket.once('close', () => {
        clearInterval(this.#heartbeat);
        resolve(this.#end ?? { kind: 'lost', cause: this.#cause });
      });
    });
    socket.on('error', (error) => (this.#cause = error));
    socket.on('message', (message) => this.#read(message));
    socket.on('pong', () => (this.#silentPings = 0));
    this.#heartbeat = setInterval(() => this.#beat(), everyMs);
    this.#heartbeat.unref();
    this.stdin = new Writable({
      write: (chunk: Buffer, _encoding, done) => this.#send(chunk, done),
      final: (done) => this.#endInput(done),
    });
    this.stdin.on('error', () => undefined); // the end of the program tells it
  }

  /** Whether the end of the input can be told; known when it is open. */
  get endsInput(): boolean {
    return this.#socket.protocol === protocols[0];
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#silentPings = 0;
    this.#socket.resume();
  }

  detach(): void {
    if (this.#socket.readyState !== WebSocket.CLOSED) this.#socket.terminate();
  }

  #read(message: RawData): void {
    this.#silentPings = 0;
    const bytes = Array.isArray(message) ? Buffer.concat(message) : Buffer.from(message as Buffer);
    const [channel] = bytes; // empty messages announce each channel
    const content = bytes.subarray(1);
    if (channel === channels.stdout && content.length > 0) this.#onOutput('stdout', content);
    else if (channel === channels.stderr && content.length > 0) this.#onOutput('stderr', content);
    else if (channel === channels.end && content.length > 0) {
      this.#end ??= endOf(content.toString('utf8'));
      this.#socket.close(1000);
    }
  }

  #send(chunk: Buffer, done: (error?: Error | null) => void): void {
    let left = Math.max(1, Math.ceil(chunk.length / frameBytes));
    let failed: Error | null = null;
    for (let at = 0; at < chunk.length; at += frameBytes)
      this.#frame(channels.stdin, chunk.subarray(at, at + frameBytes), (error) => {
        failed ??= error ?? null;
        left -= 1;
        if (left === 0) done(failed);
      });
    if (chunk.length === 0) done();
  }

  #endInput(done: (error?: Error | null) => void): void {
    if (this.endsInput && this.#socket.readyState === WebSocket.OPEN)
      this.#frame(channels.close, Buffer.of(channels.stdin), (error) => done(error ?? null));
    else {
      this.#socket.close(1000);
      done();
    }
  }

  #frame(channel: number, content: Buffer, done: (error?: Error) => void): void {
    this.#socket.send(Buffer.concat([Buffer.of(channel), content]), { binary: true }, done);
  }

  #beat(): void {
    if (this.#isPaused || this.#socket.readyState !== WebSocket.OPEN) return;
    if (this.#silentPings >= maxSilentPings) {
      this.#cause = new Error('the connection to the program is silent');
      this.#socket.terminate();
      return;
    }
    this.#silentPings += 1;
    this.#socket.ping();
  }
}

function endOf(text: string): ProgramEnd {
  const parsed = endDocument.safeParse(parseJson(text));
  if (!parsed.success) return { kind: 'lost', cause: new Error(`an unknown end: ${text}`) };
  const { status, message, reason, details } = parsed.data;
  if (status === 'Success') return { kind: 'exited', exitCode: 0 };
  const code = details?.causes?.find((cause) => cause.reason === 'ExitCode')?.message;
  if (reason === 'NonZeroExitCode' && code !== undefined)
    return { kind: 'exited', exitCode: Number.parseInt(code, 10) };
  return { kind: 'lost', cause: new Error(message ?? text) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
