import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { openEngine } from '../../src/engines/registry.ts';
import type { CallCapture, CallRecord } from '../../src/gateway/capture/call-capture.ts';
import { ModelGateway, type ModelGatewayOptions } from '../../src/gateway/model-gateway.ts';
import type { ModelRoute } from '../../src/wire/rollout/model-route.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';

/** What a server on loopback has. */
export const anyUpstream = new UrlPolicy({ allow: [], privateAddresses: 'allow' });

export interface RunningRelay extends AsyncDisposable {
  readonly relay: ModelGateway;
  readonly url: string;
  route(rolloutId: string, upstreamUrl: string, upstreamKey?: string | null): Promise<ModelRoute>;
}

/** A relay behind a plain server, as the data server has it. */
export async function startRelay(
  options: Partial<ModelGatewayOptions> = {},
): Promise<RunningRelay> {
  const relay = new ModelGateway({
    baseUrl: () => `${url}/v1`,
    clock: systemClock,
    logger: silentLogger,
    policy: anyUpstream,
    openEngine,
    ...options,
  });
  const server = createServer((incoming, response) => {
    if (!relay.handle(incoming, response)) response.writeHead(404).end('not of the gateway');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    relay,
    url,
    route: (rolloutId, upstreamUrl, upstreamKey = 'upstream-key-0123456789') =>
      relay.register({ rolloutId, upstreamUrl, upstreamKey }),
    async [Symbol.asyncDispose]() {
      await relay.close();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A capture that keeps nothing; `begin` is asked for the record of each call. */
export function captureWith(begin: () => CallRecord): CallCapture {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    open: () => ({
      ...{ activity: { calls: 0, problem: null }, unknownFields: new Set<string>(), begin },
      ...{ room: nothing, written: nothing, close: nothing },
    }),
    fileOf: () => Promise.resolve(null),
    left: () => Promise.resolve([]),
    forget: nothing,
  };
}

export interface CallOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

export interface CallAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Opens a call: resolves with the head of its answer. */
export async function openCall(url: string, options: CallOptions = {}): Promise<IncomingMessage> {
  const { method = 'POST', headers = {}, body, signal } = options;
  const outgoing = request(url, {
    ...{ method, headers, agent: false },
    ...(signal !== undefined && { signal }),
  });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return answer;
}

export async function call(url: string, options: CallOptions = {}): Promise<CallAnswer> {
  const answer = await openCall(url, options);
  const pieces: Buffer[] = [];
  for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    body: Buffer.concat(pieces),
  };
}

export function bearer(route: ModelRoute): Record<string, string> {
  return { authorization: `Bearer ${route.apiKey}` };
}
