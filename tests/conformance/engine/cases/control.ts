import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { collect, type ModelCall } from '../../../../src/engines/model-call.ts';
import type { EngineBench, EngineCase } from '../adapter.ts';
import { answer, ask, inputsOf } from '../asking.ts';

/** A call that has begun to speak and has much to say. */
async function speaking(
  { engine, signal }: EngineBench,
  request: Parameters<typeof engine.generate>[0],
): Promise<{ readonly call: ModelCall; readonly ended: Promise<string> }> {
  const call = await engine.generate({ ...request, isStreaming: true }, signal);
  let begun = (): void => undefined;
  const beginning = new Promise<void>((resolve) => (begun = resolve));
  const read = async (): Promise<string> => {
    try {
      for await (const part of call) {
        if (part.type === 'text-delta') begun();
        if (part.type === 'end') return part.result.finishReason;
      }
      return 'nothing';
    } catch (error) {
      return isRolloutError(error) ? error.code : String(error);
    } finally {
      begun();
    }
  };
  const ended = read();
  await beginning;
  return { call, ended };
}

const isAborted = (end: string): boolean => end === 'abort' || end === 'CANCELLED';

export const controlCases: readonly EngineCase[] = [
  {
    id: 'abort.by-id',
    title: 'an abort ends the one request, at the engine too; twice and unknown ids are no error',
    needs: 'abortById',
    run: async (bench) => {
      const { engine, signal } = bench;
      for (const input of await inputsOf(bench, 'LONG 3000')) {
        const request = ask('', { input });
        const other = ask('', { input });
        const [one, two] = [await speaking(bench, request), await speaking(bench, other)];
        await engine.abort('unknown', signal);
        await engine.abort(request.requestId, signal);
        await engine.abort(request.requestId, signal);
        assert.ok(isAborted(await one.ended), await one.ended);
        assert.equal((await bench.logged(request.requestId)).finish_reason, 'abort');
        await engine.abort(other.requestId, signal);
        assert.ok(isAborted(await two.ended), await two.ended);
      }
    },
  },
  {
    id: 'abort.before-the-first-token',
    title: 'an abort ends a request that has said nothing yet, streamed or not',
    needs: 'abortById',
    run: async (bench) => {
      const { engine, signal } = bench;
      for (const isStreaming of [false, true])
        for (const input of await inputsOf(bench, 'HANG')) {
          const request = ask('', { input, isStreaming });
          const ended = engine.generate(request, signal).then(collect);
          const outcome = ended.then(
            ({ finishReason }) => finishReason,
            (error: unknown) => (isRolloutError(error) ? error.code : String(error)),
          );
          await bench.until(async () => (await engine.load(signal)).runningRequests > 0);
          await engine.abort(request.requestId, signal);
          assert.ok(isAborted(await outcome), await outcome);
          await bench.until(async () => (await engine.load(signal)).runningRequests === 0);
        }
    },
  },
  {
    id: 'abort.all',
    title: 'an abort of all ends every request',
    needs: 'abortAll',
    run: async (bench) => {
      const inputs = await inputsOf(bench, 'LONG 3000');
      const calls = [];
      for (const input of inputs) calls.push(await speaking(bench, ask('', { input })));
      await bench.engine.abortAll(bench.signal);
      for (const { ended } of calls) assert.equal(await ended, 'abort');
    },
  },
  {
    id: 'pause',
    title: 'a pause holds what runs, abort mode ends it, continue takes it up',
    needs: 'pause',
    run: async (bench) => {
      const { engine, signal } = bench;
      for (const mode of ['in_place', 'retract', 'abort'] as const) {
        const { ended } = await speaking(bench, ask('LONG 100'));
        await engine.pause(mode, signal);
        const held = answer(bench, ask(`SAY while paused in ${mode}`));
        await bench.until(async () => (await engine.load(signal)).waitingRequests > 0);
        await engine.continue(signal);
        assert.equal(await ended, mode === 'abort' ? 'abort' : 'stop');
        assert.equal((await held).text, `while paused in ${mode}`);
      }
    },
  },
  {
    id: 'signal',
    title: 'a signal ends a call at the client and at the engine, and keeps no listener',
    run: async (bench) => {
      for (const input of await inputsOf(bench, 'LONG 3000')) {
        const controller = new AbortController();
        const reason = new Error('not wanted any more');
        const request = ask('', { input, isStreaming: true });
        const call = await bench.engine.generate(request, controller.signal);
        await assert.rejects(async () => {
          for await (const part of call) if (part.type === 'text-delta') controller.abort(reason);
        }, reason);
        assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
        assert.equal((await bench.logged(request.requestId)).finish_reason, 'abort');
      }
    },
  },
  {
    id: 'signal.kept',
    title: 'a signal that never fires keeps no listener of finished calls',
    run: async ({ engine }) => {
      const { signal } = new AbortController();
      for (const isStreaming of [false, true])
        await collect(await engine.generate(ask('SAY hi', { isStreaming }), signal));
      await engine.health(signal);
      assert.deepEqual(getEventListeners(signal, 'abort'), []);
    },
  },
  {
    id: 'leave',
    title: 'a reader that leaves ends the request at the engine',
    run: async (bench) => {
      const request = ask('LONG 3000', { isStreaming: true });
      for await (const part of await bench.engine.generate(request, bench.signal))
        if (part.type === 'text-delta') break;
      assert.equal((await bench.logged(request.requestId)).finish_reason, 'abort');
    },
  },
  {
    id: 'health',
    title: 'an engine that is up is healthy and names its model, one that is down is not',
    run: async ({ engine, open, signal }) => {
      const { isHealthy, model } = await engine.health(signal);
      assert.deepEqual([isHealthy, model], [true, 'mock']);
      // Port 1 is never ours to listen on.
      const down = await open({ baseUrl: 'http://127.0.0.1:1' });
      assert.equal((await down.health(signal)).isHealthy, false);
    },
  },
  {
    id: 'load',
    title: 'load counts what runs',
    needs: 'load',
    run: async (bench) => {
      const { engine, signal } = bench;
      await bench.until(async () => (await engine.load(signal)).runningRequests === 0);
      const controller = new AbortController();
      const calls = [1, 2, 3].map(() => engine.generate(ask('HANG'), controller.signal));
      await bench.until(async () => (await engine.load(signal)).runningRequests === 3);
      const { waitingRequests, kvUse } = await engine.load(signal);
      assert.equal(waitingRequests, 0);
      assert.ok(kvUse !== null && kvUse > 0 && kvUse < 1);
      controller.abort(new Error('enough'));
      await Promise.allSettled(calls);
      await bench.until(async () => (await engine.load(signal)).runningRequests === 0);
    },
  },
  {
    id: 'tokenize',
    title: 'ids of a text are those that it has in a prompt',
    needs: 'tokenize',
    run: async (bench) => {
      const text = 'SAY a text of several words, 漢字 and 🎈';
      const ids = await bench.engine.tokenize(text, bench.signal);
      const request = ask(text);
      await answer(bench, request);
      const { prompt_ids: prompt } = await bench.logged(request.requestId);
      assert.ok(ids.length > 5);
      assert.ok(prompt.join(',').includes(ids.join(',')));
    },
  },
  {
    id: 'crowd',
    title: '200 calls hang at once, and control calls come through all the same',
    run: async (bench) => {
      const { engine, signal } = bench;
      const controller = new AbortController();
      const requests = Array.from({ length: 200 }, () => ask('HANG'));
      const calls = requests.map((request) => engine.generate(request, controller.signal));
      if (engine.capabilities.load)
        await bench.until(async () => (await engine.load(signal)).runningRequests === 200);
      assert.ok((await engine.health(signal)).isHealthy);
      assert.equal((await answer(bench, ask('SAY through'))).text, 'through');
      const reason = new Error('enough');
      controller.abort(reason);
      for (const outcome of await Promise.allSettled(calls))
        assert.equal(outcome.status === 'rejected' && outcome.reason, reason);
      for (const { requestId } of requests)
        assert.equal((await bench.logged(requestId)).finish_reason, 'abort');
    },
  },
  {
    id: 'close',
    title: 'close lets a call finish and refuses new ones; it may be called twice',
    run: async (bench) => {
      const { engine, signal } = bench;
      const { ended } = await speaking(bench, ask('LONG 20'));
      const closing = Promise.all([engine.close(), engine.close()]);
      await assert.rejects(engine.generate(ask('SAY late'), signal), (error) =>
        isRolloutError(error, 'ENGINE_UNAVAILABLE'),
      );
      assert.equal(await ended, 'stop');
      await closing;
    },
  },
  {
    id: 'destroy',
    title: 'destroy fails running calls with its reason, at the engine too',
    run: async (bench) => {
      const request = ask('LONG 3000');
      const { ended } = await speaking(bench, request);
      await bench.engine.destroy(new Error('going down'));
      assert.equal(await ended, 'Error: going down');
      assert.equal((await bench.logged(request.requestId)).finish_reason, 'abort');
    },
  },
];
