import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
}
interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly events: readonly { readonly name: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}
export interface OtlpDocument {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  /** Values of the header `x-key`. */
  readonly keys: readonly unknown[];
  readonly documents: readonly OtlpDocument[];
  readonly spans: readonly OtlpSpan[];
}

/** A receiver of OTLP over HTTP, as a collector is one. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const documents: OtlpDocument[] = [];
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      assert.equal(request.url, '/v1/traces');
      keys.push(request.headers['x-key']);
      documents.push(JSON.parse(Buffer.concat(pieces).toString()) as OtlpDocument);
      response.setHeader('content-type', 'application/json');
      response.end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys,
    documents,
    get spans(): readonly OtlpSpan[] {
      return documents.flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
      );
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export function attributesOf({ attributes }: OtlpSpan): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, Object.values(value)[0] as unknown]),
  );
}
