/** Aborts, pauses, weight versions, queues and memory: what a trainer does to an engine that runs. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Policy } from '../../../src/engines/mock/policy.ts';
import { eventsOf, gate, hi, says, serve, until, type Serving } from './serving.ts';

const chat = '/v1/chat/completions';
const named = (rid: string): object => ({ messages: [{ role: 'user', content: rid }], rid });

interface Load {
  readonly num_running_reqs: number;
  readonly num_waiting_reqs: number;
  readonly num_used_tokens: number;
}

async function load(engine: Serving): Promise<Load> {
  const answer = (await (await engine.get('/v1/loads')).json()) as { loads: [Load] };
  return answer.loads[0];
}

/** A stream that is read until some of its text is there, and further when told to. */
async function openStream(engine: Serving, body: object): Promise<{ rest: () => Promise<string> }> {
  const response = await engine.post(chat, { ...body, stream: true, return_token_ids: true });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const read = async (): Promise<boolean> => {
    const { done, value } = await reader.read();
    text += value ?? '';
    return !done;
  };
  while (!text.includes('"content":"w')) assert.ok(await read(), text);
  return {
    rest: async () => {
      while (await read());
      return text;
    },
  };
}

/** Tokens come slowly enough to be caught between two of them, and end soon after. */
const slowly = { tokenLatency: { kind: 'constant', ms: 4 } } as const;
const words: Policy = says('word '.repeat(60));

function tokensOf(text: string): number[] {
  return eventsOf(text).flatMap(({ choices }) => choices[0].token_ids ?? []);
}

describe('aborts', () => {
  it('end one request by its id: finish_reason abort, and what was sampled is told and logged', async () => {
    await using engine = await serve({ policy: words, tokenLatency: { kind: 'constant', ms: 20 } });
    const one = await openStream(engine, named('one'));
    assert.equal((await engine.post('/abort_request', { rid: 'one' })).status, 200);
    const text = await one.rest();
    assert.match(text, /"finish_reason":"abort"/);
    const [line] = engine.log();
    assert.equal(line!.request_id, 'one');
    assert.equal(line!.finish_reason, 'abort');
    assert.ok(line!.output_ids.length > 0 && line!.output_ids.length < 60);
    assert.deepEqual(tokensOf(text), line!.output_ids);
    assert.equal(line!.sent_ids, line!.output_ids.length);
  });

  it('of all end those that run, those that wait, and those whose policy thinks', async () => {
    const { policy, waiting } = gate('never');
    await using engine = await serve({ policy, maxRunning: 2 });
    const answers = ['a', 'b', 'c'].map((rid) => engine.json(chat, named(rid)));
    await until(() => waiting() === 2, 'two run');
    const { num_running_reqs: running, num_waiting_reqs: queued } = await load(engine);
    assert.deepEqual([running, queued], [2, 1]);
    await engine.post('/abort_request', { abort_all: true });
    for (const answer of await Promise.all(answers)) {
      assert.equal(answer.choices[0].finish_reason, 'abort');
      assert.equal(answer.choices[0].message.content, '');
    }
    assert.deepEqual(await load(engine), { ...(await load(engine)), num_running_reqs: 0, num_waiting_reqs: 0, num_used_tokens: 0 }); // prettier-ignore
    assert.equal(engine.log().length, 3);
  });

  it('of an unknown id are no error', async () => {
    await using engine = await serve();
    assert.equal((await engine.post('/abort_request', { rid: 'nobody' })).status, 200);
  });

  it('follow when a client leaves, streaming or not', async () => {
    const { policy, waiting } = gate('never');
    await using engine = await serve({ policy });
    for (const stream of [false, true]) {
      const controller = new AbortController();
      const before = waiting();
      const pending = fetch(engine.url + chat, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...hi, stream }),
        signal: controller.signal,
      });
      await until(() => waiting() > before, 'it runs');
      controller.abort();
      await assert.rejects(pending);
      const count = stream ? 2 : 1;
      await until(() => engine.log().length === count, 'the log has it');
      assert.equal(engine.log().at(-1)!.finish_reason, 'abort');
    }
    assert.equal((await load(engine)).num_running_reqs, 0);
  });

  it('work while 200 requests hang, and so do health and load', async () => {
    const { policy, waiting, open } = gate('at last');
    await using engine = await serve({ policy });
    const bodies = Array.from({ length: 200 }, (_, index) => named(`r${index}`));
    const answers = bodies.map((body) => engine.json(chat, body));
    await until(() => waiting() === 200, 'all run');
    assert.equal((await engine.get('/health')).status, 200);
    assert.equal((await load(engine)).num_running_reqs, 200);
    await engine.post('/abort_request', { rid: 'r199' });
    assert.equal((await answers[199]!).choices[0].finish_reason, 'abort');
    open();
    for (const answer of (await Promise.all(answers)).slice(0, 199))
      assert.equal(answer.choices[0].finish_reason, 'stop');
  });
});

describe('pauses', () => {
  it('in abort mode end what runs; what comes later waits', async () => {
    await using engine = await serve({ policy: words, ...slowly });
    const running = await openStream(engine, named('running'));
    await engine.post('/pause_generation', { mode: 'abort' });
    assert.match(await running.rest(), /"finish_reason":"abort"/);
    let isAnswered = false;
    const later = engine.json(chat, { ...named('later'), max_tokens: 3 }).then((answer) => {
      isAnswered = true;
      return answer;
    });
    await until(() => isAnswered || engine.log().length > 0, 'the aborted one is logged');
    assert.equal((await load(engine)).num_running_reqs, 0);
    assert.equal(isAnswered, false);
    await engine.post('/continue_generation');
    assert.equal((await later).choices[0].finish_reason, 'length');
  });

  for (const mode of ['retract', 'in_place'] as const)
    it(`in ${mode} mode let the request go on afterwards with all it had sampled`, async () => {
      await using engine = await serve({ policy: words, ...slowly });
      const running = await openStream(engine, named('running'));
      await engine.post('/pause_generation', { mode });
      const paused = await load(engine);
      const isHeld = mode === 'in_place';
      assert.equal(paused.num_running_reqs, isHeld ? 1 : 0);
      assert.equal(paused.num_waiting_reqs, isHeld ? 0 : 1);
      assert.equal(paused.num_used_tokens > 0, isHeld);
      // Whoever holds KV keeps the cache from being flushed.
      assert.equal((await engine.get('/flush_cache')).status, isHeld ? 400 : 200);
      await engine.post('/begin_weight_update', {});
      await engine.post('/update_weight_version', { new_version: '7', abort_all_requests: false });
      await engine.post('/end_weight_update', {});
      await engine.post('/continue_generation', {});
      const text = await running.rest();
      assert.match(text, /"finish_reason":"stop"/);
      const [line] = engine.log();
      assert.deepEqual(tokensOf(text), line!.output_ids);
      assert.equal(line!.text, 'word '.repeat(60));
      assert.equal(line!.first_weight_version, 'default');
      assert.equal(line!.weight_version, '7');
      assert.equal((await load(engine)).num_used_tokens, 0);
    });
});

describe('weight versions', () => {
  it('are told in meta_info, by their routes and in the log; an update may abort', async () => {
    const { policy, waiting } = gate('never');
    await using engine = await serve({ policy });
    const running = engine.json(chat, { ...hi, return_meta_info: true });
    await until(() => waiting() === 1, 'it runs');
    await engine.post('/update_weight_version', { new_version: '3', abort_all_requests: true });
    const answer = await running;
    assert.equal(answer.choices[0].finish_reason, 'abort');
    // It ended before the new weights were there.
    assert.equal(answer.choices[0].meta_info.weight_version, 'default');
    for (const route of ['/get_weight_version', '/weight_version', '/model_info']) {
      const told = (await (await engine.get(route)).json()) as { weight_version: string };
      assert.equal(told.weight_version, '3');
    }
    assert.equal(engine.log()[0]!.weight_version, 'default');
    assert.equal(engine.log()[0]!.first_weight_version, null);
  });
});

describe('memory', () => {
  const long = (words: number): object => ({
    messages: [{ role: 'user', content: 'lorem ipsum '.repeat(words) }],
  });

  it('cached tokens come from the prefix that was there, and a flush forgets it', async () => {
    await using engine = await serve({ policy: says('ok') });
    const cached = async (): Promise<number> => {
      const answer = await engine.json(chat, long(50));
      return answer.usage.prompt_tokens_details.cached_tokens;
    };
    assert.equal(await cached(), 0);
    const second = await cached();
    assert.ok(second > 50, String(second));
    assert.equal((await engine.post('/flush_cache')).status, 200);
    assert.equal(await cached(), 0);
  });

  it('requests whose KV does not fit wait for those that run', async () => {
    const { policy, waiting, open } = gate('ok');
    await using engine = await serve({ policy, kvTokens: 1000 });
    const answers = [1, 2, 3].map(() => engine.json(chat, long(130)));
    await until(() => waiting() === 1, 'the first runs');
    const told = await load(engine);
    assert.equal(told.num_running_reqs + told.num_waiting_reqs, 3);
    assert.ok(told.num_waiting_reqs >= 1);
    open();
    for (const answer of await Promise.all(answers))
      assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal((await load(engine)).num_used_tokens, 0);
  });

  it('under pressure the youngest goes back to the queue and loses nothing', async () => {
    const content = 'word '.repeat(300);
    await using engine = await serve({ policy: says(content), kvTokens: 700 });
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => engine.json(chat, named(`n${index}`))),
    );
    for (const answer of answers) assert.equal(answer.choices[0].message.content, content);
    assert.equal((await load(engine)).num_used_tokens, 0);
  });
});

describe('the end of an engine', () => {
  it('lets what runs end, refuses what comes, then stops', async () => {
    const { policy, waiting, open } = gate('last words');
    const engine = await serve({ policy, drainMs: 20_000 });
    const running = engine.json(chat, hi);
    await until(() => waiting() === 1, 'it runs');
    const closing = engine.server.close();
    const refused = await engine.post(chat, hi).catch(() => null);
    if (refused !== null) assert.equal(refused.status, 503);
    open();
    assert.equal((await running).choices[0].message.content, 'last words');
    await closing;
    await assert.rejects(engine.get('/health'));
    await engine[Symbol.asyncDispose]();
  });

  it('aborts what does not end in time', async () => {
    const { policy, waiting } = gate('never');
    const engine = await serve({ policy, drainMs: 1 });
    const running = engine.json(chat, hi);
    await until(() => waiting() === 1, 'it runs');
    await engine.server.close();
    assert.equal((await running).choices[0].finish_reason, 'abort');
    await engine[Symbol.asyncDispose]();
  });

  it('lets an answer end whose tokens have all been sampled, and writes the line of one that never would', async () => {
    const rule = { match: {}, fault: 'stall', afterTokens: 1 } as const;
    for (const ms of [100, 'forever'] as const) {
      await using engine = await serve({ faults: [{ ...rule, ms }], drainMs: 20_000 });
      const response = await engine.post('/v1/chat/completions', { ...hi, stream: true });
      const read = response.text().catch(() => 'cut');
      await engine.server.close();
      assert.match(await read, ms === 'forever' ? /^cut$/ : /\[DONE\]/);
      const [line] = engine.log();
      assert.equal(line!.sent_ids, ms === 'forever' ? 1 : line!.output_ids.length);
    }
  });
});
