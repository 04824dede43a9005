/** Every fault of a script, as a client sees it and as the log tells it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JumpingClock } from '../../fakes/jumping-clock.ts';
import type { FaultRuleInput } from '../../../src/engines/server/fault-script.ts';
import { eventsOf, hi, says, serve, until, type Serving, type ServingOptions } from './serving.ts';

const chat = '/v1/chat/completions';
const content = 'one two three four five six seven eight';
const always = { match: {} } as const;

async function struck(fault: FaultRuleInput, more: ServingOptions = {}): Promise<Serving> {
  return await serve({ policy: says(content), faults: [fault], ...more });
}

interface Seen {
  readonly status: number | null;
  readonly text: string;
  /** What broke while the answer was read. */
  readonly error: string | null;
  readonly retryAfter: string | null;
}

async function read(engine: Serving, isStreaming: boolean): Promise<Seen> {
  let text = '';
  let response: Response;
  const broken = (error: unknown): string => {
    const { cause } = error as { cause?: { code?: string } };
    return cause?.code ?? String(error);
  };
  try {
    response = await engine.post(chat, { ...hi, stream: isStreaming, return_token_ids: true });
  } catch (error) {
    return { status: null, text, error: broken(error), retryAfter: null };
  }
  const { status } = response;
  const retryAfter = response.headers.get('retry-after');
  try {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  } catch (error) {
    return { status, text, error: broken(error), retryAfter };
  }
  return { status, text, error: null, retryAfter };
}

/** Ids of the events that arrived whole. */
function idsIn(text: string): number[] {
  return text
    .split('\n\n')
    .filter((line) => line.startsWith('data: {'))
    .flatMap((line) => {
      try {
        const { choices } = JSON.parse(line.slice(6)) as { choices: { token_ids?: number[] }[] };
        return choices[0]?.token_ids ?? [];
      } catch {
        return [];
      }
    });
}

describe('faults that refuse', () => {
  const rows: readonly [
    FaultRuleInput,
    status: number,
    words: RegExp,
    retryAfter: string | null,
  ][] = [
    // prettier-ignore
    [{ ...always, fault: 'status-500' }, 500, /failed/, null],
    [{ ...always, fault: 'overload' }, 503, /overloaded/, '1'],
    [{ ...always, fault: 'overload', status: 429, retryAfterSeconds: 7 }, 429, /overloaded/, '7'],
    [{ ...always, fault: 'context-overflow' }, 400, /maximum context length/, null],
  ];
  for (const [fault, status, words, retryAfter] of rows)
    for (const isStreaming of [false, true])
      it(`${fault.fault} ${status}, ${isStreaming ? 'streaming' : 'whole'}`, async () => {
        await using engine = await struck(fault);
        const seen = await read(engine, isStreaming);
        assert.equal(seen.status, status);
        assert.match(seen.text, words);
        assert.equal(seen.retryAfter, retryAfter);
        const [line] = engine.log();
        assert.equal(line!.fault, fault.fault);
        assert.deepEqual(line!.output_ids, []);
        assert.ok(line!.prompt_ids.length > 0);
      });
});

describe('faults that break a stream', () => {
  for (const afterTokens of [0, 3, 1000]) {
    it(`reset after ${afterTokens} tokens: the connection is gone, what was sent is counted`, async () => {
      await using engine = await struck({ ...always, fault: 'reset', afterTokens });
      const seen = await read(engine, true);
      assert.notEqual(seen.error, null);
      const [line] = engine.log();
      assert.equal(line!.fault, 'reset');
      assert.equal(line!.sent_ids, Math.min(afterTokens, line!.output_ids.length - 1));
      // A reset may overtake what was sent before it, never the other way round.
      const ids = idsIn(seen.text);
      assert.deepEqual(ids, line!.output_ids.slice(0, ids.length));
      assert.ok(ids.length <= line!.sent_ids);
      assert.ok(!seen.text.includes('[DONE]'));
    });

    it(`truncate-body after ${afterTokens} tokens: the stream ends without its end`, async () => {
      await using engine = await struck({ ...always, fault: 'truncate-body', afterTokens });
      const seen = await read(engine, true);
      assert.equal(seen.error, null);
      assert.ok(!seen.text.includes('[DONE]'));
      assert.doesNotMatch(seen.text, /"finish_reason":"/);
      const [line] = engine.log();
      const ids = idsIn(seen.text);
      assert.deepEqual(ids, line!.output_ids.slice(0, line!.sent_ids));
      // The end token goes with the reason of the end, which never came.
      assert.ok(line!.sent_ids < line!.output_ids.length || afterTokens < 1000);
    });
  }

  it('malformed-chunk: one event is no JSON, the others are all there', async () => {
    await using engine = await struck({ ...always, fault: 'malformed-chunk', afterTokens: 2 });
    const seen = await read(engine, true);
    assert.equal(seen.error, null);
    assert.throws(() => eventsOf(seen.text), SyntaxError);
    assert.deepEqual(idsIn(seen.text), engine.log()[0]!.output_ids);
    assert.equal(engine.log()[0]!.fault, 'malformed-chunk');
  });

  it('stall for a while: then the rest comes', async () => {
    const clock = new JumpingClock();
    await using engine = await struck(
      { ...always, fault: 'stall', afterTokens: 2, ms: 3_600_000 },
      { clock },
    );
    const seen = await read(engine, true);
    assert.deepEqual(idsIn(seen.text), engine.log()[0]!.output_ids);
    const [line] = engine.log();
    assert.ok(line!.ended_ms - line!.started_ms >= 3_600_000);
    assert.equal(line!.fault, 'stall');
  });

  it('stall for ever: nothing comes until the client leaves, and the log has it all', async () => {
    await using engine = await struck({ ...always, fault: 'stall', afterTokens: 2 });
    const controller = new AbortController();
    const response = await fetch(engine.url + chat, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...hi, stream: true, return_token_ids: true }),
      signal: controller.signal,
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (idsIn(text).length < 2) text += (await reader.read()).value ?? '';
    const silent = Symbol('silent');
    const pause = new Promise((resolve) => setTimeout(resolve, 30, silent));
    assert.equal(await Promise.race([reader.read().catch(() => silent), pause]), silent);
    assert.equal(engine.log().length, 0);
    controller.abort();
    await until(() => engine.log().length === 1, 'the log has it');
    assert.equal(engine.log()[0]!.sent_ids, 2);
  });
});

describe('faults that break a whole answer', () => {
  for (const [fault, expected] of [
    ['reset', 'the connection breaks'],
    ['truncate-body', 'the body is shorter than announced'],
  ] as const)
    it(`${fault}: ${expected}`, async () => {
      await using engine = await struck({ ...always, fault, afterTokens: 2 });
      const seen = await read(engine, false);
      assert.notEqual(seen.error, null);
      assert.equal(engine.log()[0]!.fault, fault);
      assert.equal(engine.log()[0]!.sent_ids, 0);
    });

  it('malformed-chunk: half of the JSON, as if it were all', async () => {
    await using engine = await struck({ ...always, fault: 'malformed-chunk' });
    const seen = await read(engine, false);
    assert.equal(seen.status, 200);
    assert.equal(seen.error, null);
    assert.throws(() => JSON.parse(seen.text) as unknown, SyntaxError);
  });

  it('stall and slow: the answer comes late and whole', async () => {
    for (const fault of [
      { ...always, fault: 'stall', ms: 60_000 },
      { ...always, fault: 'slow', ms: 60_000 },
    ] as const) {
      await using engine = await struck(fault, { clock: new JumpingClock() });
      const seen = await read(engine, false);
      assert.equal(seen.status, 200);
      assert.match(seen.text, /seven eight/);
      const [line] = engine.log();
      assert.ok(line!.ended_ms - line!.started_ms >= 60_000);
      assert.equal(line!.fault, fault.fault);
      assert.equal(line!.sent_ids, line!.output_ids.length);
    }
  });

  it('a batch breaks as one', async () => {
    await using engine = await struck({ ...always, fault: 'reset' });
    await assert.rejects(engine.post('/generate', { input_ids: [[1], [2]] }));
    await until(() => engine.log().length === 2, 'both are logged');
    assert.ok(engine.log().every((line) => line.fault === 'reset'));
  });
});

it('only the requests that a rule names are struck', async () => {
  await using engine = await serve({
    policy: says(content),
    faults: [{ match: { nth: 2 }, fault: 'status-500' }],
  });
  const statuses: number[] = [];
  for (let index = 0; index < 3; index += 1) statuses.push((await engine.post(chat, hi)).status);
  assert.deepEqual(statuses, [200, 500, 200]);
});

it('latency is waited for: before the first token, and before every further one', async () => {
  await using engine = await serve({
    policy: says(content),
    clock: new JumpingClock(),
    latency: { kind: 'constant', ms: 1000 },
    tokenLatency: { kind: 'constant', ms: 100 },
  });
  await engine.json(chat, hi);
  const [line] = engine.log();
  assert.equal(line!.ended_ms - line!.started_ms, 1000 + 100 * line!.output_ids.length);
});
