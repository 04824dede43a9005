import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { ModelRoute } from '../../src/wire/rollout/model-route.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { loadCases, type GoldenCase } from './golden.ts';
import { bearer, call, openCall, startRelay } from './relay-fixture.ts';

interface ServedCase extends GoldenCase {
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly key: 'bearer' | 'x-api-key' | 'path' | 'none';
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
    /** The client goes when it has read something. */
    readonly leaves?: boolean;
  };
  readonly upstream: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    /** The answer does not end by itself. */
    readonly isOpen?: boolean;
  };
  readonly answer: {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    /** Stands in the body. */
    readonly body?: string;
  };
  /** Requests that the upstream got. */
  readonly received: number;
  /** Fields of the upstream's request. */
  readonly sent?: Readonly<Record<string, unknown>>;
  readonly withoutHeaders?: readonly string[];
}

function headersOf({ key, headers = {} }: ServedCase['request'], route: ModelRoute) {
  if (key === 'bearer') return { ...bearer(route), ...headers };
  return key === 'x-api-key' ? { 'x-api-key': route.apiKey, ...headers } : headers;
}

describe('what the gateway serves', { timeout: 60_000, concurrency: 4 }, () => {
  for (const each of loadCases('served') as readonly ServedCase[])
    it(`${each.case}: ${each.title}`, async () => {
      await using upstream = await ChatUpstream.start((response) => {
        response.writeHead(each.upstream.status, each.upstream.headers);
        if (each.upstream.isOpen === true) response.write(each.upstream.body);
        else response.end(each.upstream.body);
      });
      await using running = await startRelay();
      const route = await running.route('r', `${upstream.url}/v1`);
      const { method, path, body, key, leaves = false } = each.request;
      const url = `${running.url}${key === 'path' ? `/k/${route.apiKey}` : ''}${path}`;
      const options = {
        ...{ method, headers: headersOf(each.request, route) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      };
      if (leaves) {
        const answer = await openCall(url, options);
        assert.equal(answer.statusCode, each.answer.status);
        await once(answer, 'data');
        answer.destroy();
        await upstream.opened(0);
      } else {
        const answer = await call(url, options);
        assert.equal(answer.status, each.answer.status);
        for (const [name, value] of Object.entries(each.answer.headers ?? {}))
          assert.equal(answer.headers[name], value);
        const text = answer.body.toString();
        assert.ok(text.includes(each.answer.body ?? ''), text);
      }
      assert.equal(upstream.received.length, each.received);
      const [received] = upstream.received;
      for (const name of each.withoutHeaders ?? [])
        assert.equal(received?.headers[name], undefined);
      const sent = JSON.parse(received?.body.toString() ?? '{}') as Record<string, unknown>;
      for (const [name, value] of Object.entries(each.sent ?? {}))
        assert.deepEqual(sent[name], value);
    });
});
