import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cacheMarked } from '../../../src/agents/terminus-2/cache-marks.ts';
import { userMessage } from '../../../src/agents/terminus-2/chat-history.ts';
import { ModelQueries } from '../../../src/agents/terminus-2/model-queries.ts';
import { compileOptions } from '../../../src/agents/terminus-2/options.ts';
import type { Clock } from '../../../src/core/clock.ts';
import { RolloutError, isRolloutError, type ErrorCode } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { JumpingClock } from '../../fakes/jumping-clock.ts';
import { ScriptedEngine, silence, type Script } from './scripted-engine.ts';

class NotingClock extends JumpingClock {
  readonly slept: number[] = [];

  override async sleep(ms: number, signal: AbortSignal): Promise<void> {
    this.slept.push(ms);
    await super.sleep(ms, signal);
  }
}

const failure = (code: ErrorCode): RolloutError =>
  new RolloutError(code, 'as scripted', { phase: 'model-call' });

function queriesOf(
  script: Script,
  given: {
    readonly kwargs?: Readonly<Record<string, unknown>>;
    readonly modelName?: string;
    readonly clock?: Clock;
  } = {},
) {
  const engine = new ScriptedEngine(script);
  const clock = given.clock ?? new NotingClock();
  const options = compileOptions({
    kwargs: given.kwargs ?? {},
    modelName: given.modelName ?? 'openai/org/m',
    logger: silentLogger,
  });
  return { engine, queries: new ModelQueries({ engine, options, clock, logger: silentLogger }) };
}

describe('a query of the model', () => {
  test('sends what is configured and nothing that is not', async () => {
    const { engine, queries } = queriesOf(() => 'hello');
    await queries.ask([userMessage('hi')], never);
    const { requestId, ...request } = engine.calls[0]!.request;
    assert.match(requestId, /^terminus-2-[a-z0-9]{20}$/);
    assert.deepEqual(request, {
      model: 'org/m',
      input: { kind: 'messages', messages: [{ role: 'user', content: 'hi' }] },
      sampling: {},
      isStreaming: false,
      wantsTokens: false,
      extraBody: {},
      headers: {},
    });
    const full = queriesOf(() => 'hello', {
      kwargs: { temperature: 0, collect_rollout_details: true, session_id: 's' },
    });
    await full.queries.ask([userMessage('hi')], never);
    const sent = full.engine.calls[0]!.request;
    assert.deepEqual(sent.sampling, { temperature: 0 });
    assert.equal(sent.wantsTokens, true);
    assert.deepEqual(sent.extraBody, { session_id: 's' });
    assert.deepEqual(sent.headers, { 'X-Session-ID': 's' });
  });

  test('has an id of its own at every attempt', async () => {
    const { engine, queries } = queriesOf((_, call) =>
      call < 4 ? failure('ENGINE_UNAVAILABLE') : 'at last',
    );
    assert.equal((await queries.ask([], never)).result.text, 'at last');
    assert.equal(new Set(engine.calls.map(({ request }) => request.requestId)).size, 5);
  });

  const rows: readonly (readonly [ErrorCode, attempts: number])[] = [
    ['ENGINE_UNAVAILABLE', 9],
    ['ENGINE_OVERLOADED', 9],
    ['ENGINE_STREAM_BROKEN', 9],
    ['ENGINE_RESPONSE_INVALID', 9],
    ['ENGINE_STALLED', 9],
    ['CONTEXT_OVERFLOW', 1],
    ['ENGINE_UNAUTHORIZED', 1],
    ['ENGINE_REQUEST_INVALID', 1],
    ['ENGINE_UNSUPPORTED', 1],
  ];
  for (const [code, attempts] of rows)
    test(`that always fails with ${code} is sent ${attempts} times`, async () => {
      const { engine, queries } = queriesOf(() => failure(code));
      await assert.rejects(queries.ask([], never), (error) => isRolloutError(error, code));
      assert.equal(engine.calls.length, attempts);
    });

  test('waits between attempts as told, never before a new round', async () => {
    const clock = new NotingClock();
    const { queries } = queriesOf(() => failure('ENGINE_UNAVAILABLE'), { clock });
    await assert.rejects(queries.ask([], never));
    assert.deepEqual(clock.slept, [4000, 4000, 0, 4000, 4000, 0, 4000, 4000]);
    const quick = new NotingClock();
    const kwargs = { retry_min_wait_sec: 0.1, retry_max_wait_sec: 1.5 };
    const other = queriesOf(() => failure('ENGINE_UNAVAILABLE'), { clock: quick, kwargs });
    await assert.rejects(other.queries.ask([], never));
    assert.deepEqual(quick.slept.slice(0, 3), [1000, 1500, 0]);
  });

  const stops: readonly (readonly [title: string, Script, expected: ErrorCode | null])[] = [
    ['in the first call, as a model that never answered', () => silence, 'ENGINE_STALLED'],
    ['in a wait, with the failure', () => failure('ENGINE_UNAVAILABLE'), 'ENGINE_UNAVAILABLE'],
    ['in a later call, with its reason', (_, call) => (call === 0 ? 'hello' : silence), null],
  ];
  for (const [title, script, expected] of stops)
    test(`ends at the signal, ${title}`, async () => {
      const controller = new AbortController();
      const clock: Clock = {
        now: () => new Date(0),
        monotonicMs: () => 0,
        sleep: (_, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
          }),
      };
      const { engine, queries } = queriesOf(script, { clock });
      if (expected === null) await queries.ask([], never);
      const asked = queries.ask([], controller.signal);
      const reason = new Error('enough');
      setImmediate(() => controller.abort(reason));
      await assert.rejects(asked, (error) =>
        expected === null ? error === reason : isRolloutError(error, expected),
      );
      assert.equal(engine.calls.length, expected === null ? 2 : 1);
    });

  test('that the engine aborted is no reply and is sent again', async () => {
    const { engine, queries } = queriesOf((_, call) =>
      call === 0 ? { text: 'half a rep', finishReason: 'abort' } : 'whole reply',
    );
    assert.equal((await queries.ask([], never)).result.text, 'whole reply');
    assert.equal(engine.calls.length, 2);
  });

  test('marks the newest messages for the cache where the endpoint wants that', async () => {
    const messages = Array.from({ length: 6 }, (_, index) => userMessage(`m${index}`));
    const marked = cacheMarked([...messages, userMessage('')]);
    assert.deepEqual(
      marked.map(({ content }) => Array.isArray(content)),
      [false, false, false, true, true, true, false],
    );
    assert.deepEqual(marked[3]!.content, [
      { type: 'text', text: 'm3', cache_control: { type: 'ephemeral' } },
    ]);
    const { engine, queries } = queriesOf(() => 'x', { modelName: 'anthropic/some-model' });
    await queries.ask([userMessage('hi')], never);
    assert.ok(Array.isArray(engine.contents(0)[0]));
  });
});
