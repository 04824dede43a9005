import assert from 'node:assert/strict';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import type { Logger } from '../../../src/core/logger.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type {
  EndedCall,
  RouteCapture,
  SentRequest,
} from '../../../src/gateway/capture/call-capture.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import {
  isWholeCapture,
  readCalls,
  type ReadCall,
} from '../../../src/gateway/capture/read-calls.ts';
import { FileRouteCapture } from '../../../src/gateway/capture/route-capture.ts';
import type { TrajectoryLog } from '../../../src/trajectory/trajectory-log.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';

const sent: SentRequest = {
  dialect: 'chat',
  isStreaming: false,
  client: null,
  body: { messages: [{ role: 'user', content: 'hi' }] },
};
const ended: EndedCall = {
  ...{ end: 'cut', status: 200, problem: null, isDelivered: true },
  ...{ firstByteMs: 1, durationMs: 2 },
};

function oneCall(route: RouteCapture, content = 'hi'): void {
  const record = route.begin();
  record.sent({ ...sent, body: { messages: [{ role: 'user', content }] } });
  record.part({ type: 'prompt-ids', ids: [7] });
  record.part({ type: 'tokens-delta', ids: [1, 2], logprobs: [-0, -0.5] });
  record.part({ type: 'text-delta', text: 'yes' });
  record.ended(ended);
}

async function callsIn(file: string | null): Promise<readonly ReadCall[]> {
  assert.ok(file !== null);
  const calls: ReadCall[] = [];
  for await (const call of readCalls(file)) calls.push(call);
  return calls;
}

describe('the captured calls of a rollout', { timeout: 60_000 }, () => {
  let dir = '';
  let folders = 0;
  const logged: string[] = [];
  const logger: Logger = {
    log: (level, message, fields) => logged.push(`${level} ${message} ${String(fields?.['code'])}`),
  };
  const clock = new ManualClock();
  const fresh = (options: { readonly maxBytes?: number } = {}): FileCapture =>
    new FileCapture({ dir: path.join(dir, String((folders += 1))), clock, logger, ...options });
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-route-capture-'));
  });
  after(() => rm(dir, { recursive: true, force: true }));

  it('leave nothing when there was none, and one file that says that it is whole', async () => {
    const capture = fresh();
    const empty = capture.open('empty', []);
    empty.begin().ended(ended);
    await empty.close();
    assert.equal(await capture.fileOf('empty'), null);
    const route = capture.open('a/../b', []);
    oneCall(route);
    await Promise.all([route.close(), route.close()]);
    oneCall(route, 'too late');
    const file = await capture.fileOf('a/../b');
    assert.ok(file !== null);
    assert.ok(file.startsWith(dir));
    assert.ok(await isWholeCapture(file));
    const [call, ...more] = await callsIn(file);
    assert.deepEqual(more, []);
    assert.equal(call?.end, 'cut');
    assert.deepEqual(JSON.parse(call.request), sent.body);
    assert.deepEqual(call.answer?.metrics, {
      ...{ prompt_token_ids: [7], completion_token_ids: [1, 2], logprobs: [-0, -0.5], extra: {} },
    });
    await capture.forget('a/../b');
    await capture.forget('a/../b');
    assert.equal(await capture.fileOf('a/../b'), null);
  });

  it('are still there after the server was killed, and what was torn then is left out', async () => {
    const capture = fresh();
    const route = capture.open('r', []);
    oneCall(route);
    route.begin().sent(sent);
    await route.close();
    const file = await capture.fileOf('r');
    assert.ok(file !== null);
    assert.ok(!(await isWholeCapture(file)), 'a call has not ended');
    await appendFile(file, '{"step_id":4,"sou');
    const calls = await callsIn(file);
    assert.deepEqual(
      calls.map(({ call, end }) => [call, end]),
      [
        [1, 'cut'],
        [2, null],
      ],
    );
  });

  it('are found by their rollouts at the next start, and what is no rollout’s goes', async () => {
    const capture = fresh();
    for (const id of ['one', 'two']) {
      const route = capture.open(id, []);
      oneCall(route);
      await route.close();
    }
    const root = path.dirname(path.dirname((await capture.fileOf('one')) ?? ''));
    const torn = capture.open('three', []);
    oneCall(torn);
    await torn.close();
    await writeFile((await capture.fileOf('three')) ?? '', '{"slipway_spi');
    await mkdir(path.join(root, 'empty'));
    assert.deepEqual([...(await capture.left())].sort(), ['one', 'two']);
    assert.equal((await readdir(root)).length, 2);
    for (const id of await capture.left()) await capture.forget(id);
    assert.deepEqual(await readdir(root), []);
    assert.deepEqual(await fresh().left(), []);
  });

  it('lose a secret of the upstream, and the ids that would spell it', async () => {
    const capture = fresh();
    const route = capture.open('r', ['upstream-key-0123']);
    oneCall(route);
    oneCall(route, 'it is upstream-key-0123');
    await route.close();
    const [first, second] = await callsIn(await capture.fileOf('r'));
    assert.deepEqual(first?.answer?.metrics?.prompt_token_ids, [7]);
    assert.equal(second?.answer?.metrics?.prompt_token_ids, undefined);
    assert.deepEqual(second?.answer?.metrics?.completion_token_ids, [1, 2]);
    const text = await readFile((await capture.fileOf('r')) ?? '', 'utf8');
    assert.ok(!text.includes('upstream-key-0123') && text.includes('it is [REDACTED]'));
  });

  it('end with their reason where there is no place for them, and calls go on', async () => {
    const blocked = path.join(dir, 'blocked');
    await writeFile(blocked, 'a file stands there');
    const capture = new FileCapture({ dir: blocked, clock, logger });
    const route = capture.open('r', []);
    oneCall(route);
    await route.close();
    assert.deepEqual(
      [route.activity.calls, route.activity.problem?.code],
      [1, 'TRAJECTORY_WRITE_FAILED'],
    );
    await route.room(never);
    const small = fresh({ maxBytes: 400 });
    const limited = small.open('r', []);
    oneCall(limited);
    oneCall(limited, 'x'.repeat(400));
    oneCall(limited);
    await limited.close();
    assert.equal(limited.activity.problem?.code, 'CAPTURE_TOO_LARGE');
    const file = await small.fileOf('r');
    assert.equal((await callsIn(file)).length, 1);
    assert.ok(!(await isWholeCapture(file ?? '')));
    assert.deepEqual(logged.splice(0), [
      'warn calls of a rollout are not captured any more TRAJECTORY_WRITE_FAILED',
      'warn calls of a rollout are not captured any more CAPTURE_TOO_LARGE',
    ]);
  });

  it('end at the write that failed: nothing comes behind a gap', async () => {
    const kept: unknown[] = [];
    const log: TrajectoryLog = {
      stepCount: 0,
      append: (step) => {
        if (kept.length === 2) throw full();
        return Promise.resolve(kept.push(step));
      },
      checkpoint: () => Promise.resolve(),
      close: () => Promise.resolve(),
      leave: () => Promise.resolve(),
    };
    const parts = { rolloutId: 'r', clock, logger, maxBytes: 1e6 };
    const route = new FileRouteCapture({ ...parts, openLog: () => Promise.resolve(log) });
    for (let call = 0; call < 3; call += 1) oneCall(route);
    await route.close();
    assert.equal(kept.length, 2);
    assert.equal(route.activity.problem?.message, 'the disk is full');
    assert.deepEqual(logged.splice(0).length, 1);
  });

  it('wait for the disk within a bound, beyond which further calls wait', async () => {
    const opening = Promise.withResolvers<TrajectoryLog>();
    const parts = { rolloutId: 'r', clock, logger, maxBytes: 1e9 };
    const route = new FileRouteCapture({ ...parts, openLog: () => opening.promise });
    await route.room(never);
    route.begin().sent({ ...sent, text: 'x'.repeat(9 * 1024 * 1024) });
    const leaving = new AbortController();
    const left = route.room(leaving.signal);
    leaving.abort(new Error('the agent left'));
    await assert.rejects(left, /the agent left/);
    let hasRoom = false;
    const room = route.room(never).then(() => (hasRoom = true));
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(!hasRoom);
    opening.reject(full());
    await room;
    logged.length = 0;
  });
});

function full(): RolloutError {
  return new RolloutError('TRAJECTORY_WRITE_FAILED', 'the disk is full', { phase: 'collect' });
}
