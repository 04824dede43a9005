/**
 * Forward proxy through which a sandbox without a network of its own reaches what its policy allows: plain HTTP in absolute form
 * and CONNECT tunnels. It fails closed: whatever it does not understand, cannot resolve or does not find in the policy is refused,
 * and when this process dies the sandbox has no way out at all. The policy can be replaced while it runs; connections that
 * the new policy forbids end at once.
 */
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { lookup as systemLookup } from 'node:dns/promises';
import type { Duplex } from 'node:stream';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { NetworkPolicy } from '../../wire/network-policy.ts';
import { HostRules, plainAddress } from './allowed-hosts.ts';
import { listenOn, type ListenAddress } from './listen-address.ts';
import { hopByHopHeaders } from '../../wire/hop-by-hop-headers.ts';

/** Addresses of a name, in order of preference. Rejects when there is none. */
export type ResolveName = (name: string) => Promise<readonly string[]>;

export interface EgressProxyOptions {
  readonly policy: NetworkPolicy;
  readonly resolveName?: ResolveName;
  /** Lets names resolve to addresses of this machine; for tests. Default false. */
  readonly allowLocal?: boolean;
  /** Connections of the sandbox at a time; more are closed on arrival. Default 512. */
  readonly maxConnections?: number;
  /** For resolving and connecting together. Default 20 s. */
  readonly connectTimeoutMs?: number;
  /** A connection without a byte in either direction ends after this long. Default 10 min. */
  readonly idleTimeoutMs?: number;
}

export interface EgressCounts {
  readonly allowed: number;
  readonly refused: number;
  readonly failed: number;
}

/** One connection to the outside, with what was decided about it. */
interface Passage {
  readonly name: string | null;
  readonly address: string;
  end(): void;
}

class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class EgressProxy {
  readonly #server: Server;
  readonly #options: EgressProxyOptions;
  readonly #passages = new Set<Passage>();
  readonly #clients = new Set<Duplex>();
  readonly #counts = { allowed: 0, refused: 0, failed: 0 };
  #rules: HostRules;
  #closing: Promise<void> | null = null;

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    this.#rules = new HostRules(options.policy);
    this.#server = createServer({ requestTimeout: 0, headersTimeout: 30_000 });
    this.#server.maxConnections = options.maxConnections ?? 512;
    this.#server.on('connection', (socket) => this.#track(socket));
    this.#server.on('request', (request, response) => void this.#forward(request, response));
    this.#server.on('connect', (request, socket, head) => void this.#tunnel(request, socket, head));
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  get counts(): EgressCounts {
    return { ...this.#counts };
  }

  /** Starts listening; resolves with the address in use (a port of 0 picks a free one). Rejects with the system's error. */
  listen(at: ListenAddress): Promise<{ readonly port: number | null }> {
    return listenOn(this.#server, at);
  }

  /** Replaces the policy for all that comes and ends the connections that it forbids. */
  setPolicy(policy: NetworkPolicy): void {
    this.#rules = new HostRules(policy);
    for (const passage of this.#passages)
      if (this.#rules.refuses(passage.address, passage.name, this.#local) !== null) passage.end();
  }

  /** Stops listening and ends every connection. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const passage of this.#passages) passage.end();
      for (const client of this.#clients) client.destroy();
    });
    return this.#closing;
  }

  get #local(): { readonly allowLocal: boolean } {
    return { allowLocal: this.#options.allowLocal === true };
  }

  #track(socket: Socket): void {
    this.#clients.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#clients.delete(socket));
    socket.setTimeout(this.#options.idleTimeoutMs ?? 600_000, () => socket.destroy());
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const target = absoluteTarget(request.url ?? '');
      const port = target.port === '' ? 80 : Number(target.port);
      const socket = await this.#open(target.hostname, port, () => response.destroy());
      const headers = endToEnd(request.rawHeaders, ['host']);
      const onward = httpRequest({
        createConnection: () => socket,
        method: request.method,
        path: `${target.pathname}${target.search}`,
        // The target is what counts, whatever the client put into Host, if anything.
        headers: ['host', target.host, ...headers, 'connection', 'close'],
        setHost: false,
      });
      onward.on('error', () => this.#fail(response, new Refused(502, 'the server hung up')));
      onward.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, endToEnd(answer.rawHeaders));
        answer.on('error', () => response.destroy()); // also when the server ends in the middle
        answer.pipe(response);
      });
      response.once('close', () => socket.destroy());
      request.pipe(onward);
    } catch (error) {
      this.#fail(response, error);
    }
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    try {
      const { host, port } = connectTarget(request.url ?? '');
      const outside = await this.#open(host, port, () => client.destroy());
      if (client.destroyed) {
        outside.destroy();
        return;
      }
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      outside.write(head);
      client.once('close', () => outside.destroy());
      outside.once('close', () => {
        if (!outside.readableEnded) client.destroy();
      });
      client.pipe(outside);
      outside.pipe(client);
    } catch (error) {
      const { status, text } = this.#refusal(error);
      client.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
      );
    }
  }

  /** Checks, resolves, checks the addresses and connects. The connection is registered before anything passes. */
  async #open(host: string, port: number, onEnd: () => void): Promise<Socket> {
    const ms = this.#options.connectTimeoutMs ?? 20_000;
    using deadline = new LinkedAbort([], {
      ms,
      reason: () => new Refused(504, `${host} did not answer in ${ms} ms`),
    });
    const name = isIP(plainAddress(host)) === 0 ? host : null;
    const rules = this.#rules;
    const candidates = name === null ? [host] : await this.#resolve(name, deadline.signal);
    const refusals = candidates.map((address) => rules.refuses(address, name, this.#local));
    const usable = candidates.filter((_address, index) => refusals[index] === null);
    if (usable.length === 0)
      throw new Refused(
        403,
        refusals.includes('local-address')
          ? `${host} is an address of the host, which no rule names`
          : `${host} is not in the allowed hosts`,
      );
    let last: unknown;
    for (const address of usable)
      try {
        const socket = await dial(plainAddress(address), port, deadline.signal);
        return this.#register(socket, { name, address }, onEnd);
      } catch (error) {
        last = error;
        deadline.signal.throwIfAborted();
        if (error instanceof Refused) throw error;
      }
    throw new Refused(502, `${host}:${port} cannot be reached: ${codeOf(last)}`);
  }

  async #resolve(name: string, signal: AbortSignal): Promise<readonly string[]> {
    if (!this.#rules.allowsName(name))
      throw new Refused(403, `${name} is not in the allowed hosts`);
    const resolve = this.#options.resolveName ?? resolveBySystem;
    const late = Promise.withResolvers<never>();
    const onAbort = (): void => late.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([resolve(name), late.promise]);
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Refused(502, `${name} cannot be resolved: ${codeOf(error)}`);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #register(
    socket: Socket,
    decided: { readonly name: string | null; readonly address: string },
    onEnd: () => void,
  ): Socket {
    // The policy may have been replaced, or the proxy closed, while the connection was being made.
    const isStale = this.#rules.refuses(decided.address, decided.name, this.#local) !== null;
    if (isStale || this.#closing !== null) {
      socket.destroy();
      throw new Refused(403, 'the network policy changed');
    }
    const passage: Passage = {
      ...decided,
      end: () => {
        socket.destroy();
        onEnd();
      },
    };
    this.#passages.add(passage);
    this.#counts.allowed += 1;
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#passages.delete(passage));
    socket.setTimeout(this.#options.idleTimeoutMs ?? 600_000, () => passage.end());
    return socket;
  }

  #fail(response: ServerResponse, error: unknown): void {
    const { status, text } = this.#refusal(error);
    if (response.headersSent) response.destroy();
    else
      response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(text);
  }

  #refusal(error: unknown): { readonly status: number; readonly text: string } {
    const status = error instanceof Refused ? error.status : 502;
    if (status === 403) this.#counts.refused += 1;
    else this.#counts.failed += 1;
    const text = error instanceof Refused ? error.message : 'the request could not be forwarded';
    return { status, text: `slipway egress proxy: ${text}\n` };
  }
}

async function resolveBySystem(name: string): Promise<readonly string[]> {
  return (await systemLookup(name, { all: true })).map((entry) => entry.address);
}

function dial(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, allowHalfOpen: true });
    const stop = (): void => {
      socket.destroy();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
    socket.once('error', (error) => {
      signal.removeEventListener('abort', stop);
      reject(error);
    });
    socket.once('connect', () => {
      signal.removeEventListener('abort', stop);
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}

function absoluteTarget(url: string): URL {
  const target = URL.canParse(url) ? new URL(url) : null;
  if (target?.protocol !== 'http:')
    throw new Refused(400, 'only absolute http:// requests and CONNECT are understood');
  return target;
}

function connectTarget(authority: string): { readonly host: string; readonly port: number } {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[^:@/[\]]+):(\d{1,5})$/.exec(authority);
  const port = Number(match?.[2] ?? Number.NaN);
  if (match?.[1] === undefined || port < 1 || port > 65_535)
    throw new Refused(400, 'CONNECT needs host:port');
  return { host: plainAddress(match[1]), port };
}

/** Raw header pairs without those that concern one connection only, named by the list or by `Connection`. */
function endToEnd(raw: readonly string[], without: readonly string[] = []): string[] {
  const dropped = new Set([...hopByHopHeaders, ...without]);
  for (let at = 0; at < raw.length; at += 2)
    if (raw[at]?.toLowerCase() === 'connection')
      for (const name of (raw[at + 1] ?? '').split(',')) dropped.add(name.trim().toLowerCase());
  const kept: string[] = [];
  for (let at = 0; at < raw.length; at += 2)
    if (!dropped.has((raw[at] ?? '').toLowerCase())) kept.push(raw[at] ?? '', raw[at + 1] ?? '');
  return kept;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException | null)?.code ?? 'no answer';
}
