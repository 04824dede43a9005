import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRolloutError, type ErrorCode, type RolloutError } from '../../../../src/core/errors.ts';
import type { Engine } from '../../../../src/engines/engine.ts';
import { collect } from '../../../../src/engines/model-call.ts';
import type { EngineBench, EngineCase } from '../adapter.ts';
import { answer, ask, inputsOf } from '../asking.ts';

async function failure(work: Promise<unknown>): Promise<RolloutError> {
  const error = await work.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  );
  if (isRolloutError(error)) return error;
  throw error;
}

/** The code with which a message that holds `word` fails, for every input and both ways of asking. */
async function failsWith(bench: EngineBench, word: string, code: ErrorCode): Promise<RolloutError> {
  let last: RolloutError | null = null;
  for (const input of await inputsOf(bench, `SAY ${word} one two three four five six`))
    for (const isStreaming of [false, true]) {
      const request = ask('', { input, isStreaming });
      last = await failure(answer(bench, request));
      assert.equal(last.code, code, last.message);
      assert.equal(last.phase, 'model-call');
      assert.ok(last.message.includes(request.requestId), last.message);
    }
  return last!;
}

const fault = (id: string, word: string, code: ErrorCode): EngineCase => ({
  id: `fault.${id}`,
  title: `${word} is ${code}`,
  run: async (bench) => {
    await failsWith(bench, word, code);
  },
});

export const failureCases: readonly EngineCase[] = [
  fault('500', 'FAULT-500', 'ENGINE_UNAVAILABLE'),
  fault('503', 'FAULT-503', 'ENGINE_OVERLOADED'),
  fault('overflow', 'FAULT-OVERFLOW', 'CONTEXT_OVERFLOW'),
  fault('reset', 'FAULT-RESET', 'ENGINE_STREAM_BROKEN'),
  fault('truncated', 'FAULT-TRUNCATED', 'ENGINE_STREAM_BROKEN'),
  fault('malformed', 'FAULT-MALFORMED', 'ENGINE_RESPONSE_INVALID'),
  {
    id: 'fault.429',
    title: 'an overload that says when to come again keeps that',
    run: async (bench) => {
      const error = await failsWith(bench, 'FAULT-429', 'ENGINE_OVERLOADED');
      assert.equal(error.detail, 'retry-after: 7');
      assert.equal(error.retryable, true);
    },
  },
  {
    id: 'fault.stall',
    title: 'an answer that falls silent is ENGINE_STALLED, and is aborted at the engine',
    run: async (bench) => {
      const engine: Engine = await bench.open({ stallMs: 300 });
      const request = ask('SAY FAULT-STALL one two three four', { isStreaming: true });
      const error = await failure(engine.generate(request, bench.signal).then(collect));
      assert.equal(error.code, 'ENGINE_STALLED');
      await bench.logged(request.requestId);
    },
  },
  {
    id: 'overflow.real',
    title: 'a prompt that does not fit is CONTEXT_OVERFLOW and no retry',
    run: async (bench) => {
      const sampling = { maxTokens: 10_000_000 };
      for (const input of await inputsOf(bench, 'SAY hi')) {
        const error = await failure(answer(bench, ask('', { input, sampling })));
        assert.equal(error.code, 'CONTEXT_OVERFLOW');
        assert.equal(error.retryable, false);
      }
    },
  },
  {
    id: 'invalid',
    title: 'a request that makes no sense is ENGINE_REQUEST_INVALID',
    run: async (bench) => {
      const input = { kind: 'messages', messages: [] } as const;
      const error = await failure(answer(bench, ask('', { input })));
      assert.equal(error.code, 'ENGINE_REQUEST_INVALID');
    },
  },
  {
    id: 'unauthorized',
    title: 'a wrong key is ENGINE_UNAUTHORIZED, and no message shows it',
    run: async ({ open, signal }) => {
      const engine = await open({ apiKey: 'key-that-is-wrong' });
      const error = await failure(engine.generate(ask('SAY hi'), signal));
      assert.equal(error.code, 'ENGINE_UNAUTHORIZED');
      assert.ok(!error.message.includes('key-that-is-wrong'));
    },
  },
  {
    id: 'url.opaque',
    title: 'path, percent-encoding and query of the address reach a proxy byte for byte',
    run: async (bench) => {
      const seen: string[] = [];
      const proxy = createServer((incoming, outgoing) => {
        const target = incoming.url ?? '';
        seen.push(target);
        const prefix = `/p%2Fa/%7Eb${bench.adapter.basePath}`;
        const path = `${bench.adapter.basePath}${target.slice(prefix.length)}`;
        const { method, headers } = incoming;
        const onward = send(`${bench.serverUrl}${path}`, { method, headers }, (back) => {
          outgoing.writeHead(back.statusCode ?? 500, back.headers);
          back.pipe(outgoing);
        });
        incoming.pipe(onward);
      }).listen(0, '127.0.0.1');
      await once(proxy, 'listening');
      try {
        const { port } = proxy.address() as AddressInfo;
        const engine = await bench.open({
          baseUrl: `http://127.0.0.1:${port}/p%2Fa/%7Eb${bench.adapter.basePath}?sig=%2b+x&&y`,
        });
        const result = await collect(await engine.generate(ask('SAY hi'), bench.signal));
        assert.equal(result.text, 'hi');
        assert.ok((await engine.health(bench.signal)).isHealthy);
        for (const target of seen)
          assert.match(target, /^\/p%2Fa\/%7Eb\/[a-z0-9_/]+\?sig=%2b\+x&&y$/);
        assert.ok(!engine.url.includes('sig'));
        await engine.close();
      } finally {
        proxy.closeAllConnections();
        proxy.close();
      }
    },
  },
];
