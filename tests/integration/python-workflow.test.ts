/** A workflow and a grader written for osmosis-ai, unchanged, carried out by the backend `local`. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { osmosisPeerRecord } from '../../scripts/setup/osmosis-peer.js';
import { until } from '../support/until.ts';
import {
  localSection,
  pidOf,
  pythonBench,
  type PythonBench,
} from '../chaos/backends/python-local.ts';

describe('code written for osmosis-ai', { timeout: 240_000 }, () => {
  test('rolls out and grades unchanged; a killed process ends its own rollout, and no other', async (context) => {
    context.diagnostic(`on ${await osmosisPeerRecord()}`);
    const all = { rollouts: 3, right: 3, failing: 1, typed: 1, problems: [] };
    assert.deepEqual(await localSection.run(3), all);
  });
});

describe('a session of osmosis-ai that registers itself', { timeout: 240_000 }, () => {
  let bench: PythonBench;
  before(async () => {
    bench = await pythonBench('SessionWorkflow', ['--max-concurrent', '2']);
  });
  after(() => bench[Symbol.asyncDispose]());

  test('is the sample: its own messages for the grader, those of a chat for the archive', async () => {
    const { grader, reward } = await bench.rollOut({ rollout_id: 's-1', label: 'task of s-1' });
    const { messages, metrics } = grader?.['sample'] as Readonly<Record<string, unknown>>;
    assert.deepEqual(messages, [
      { who: 'user', said: 'task of s-1' },
      { who: 'assistant', said: 'task of s-1' },
    ]);
    assert.deepEqual(metrics, { items: 2 });
    assert.equal(reward, 1);
    const trajectory = JSON.parse(await bench.kept('s-1', 'trajectory.json')) as {
      readonly steps: readonly { readonly source: string; readonly message: string }[];
    };
    assert.deepEqual(
      trajectory.steps.map(({ source, message }) => [source, message]),
      [
        ['user', 'task of s-1'],
        ['agent', 'task of s-1'],
      ],
    );
  });

  test('may be there only once', async () => {
    const { status, completion } = await bench.rollOut({
      rollout_id: 's-2',
      label: 'x',
      metadata: { two_sessions: true },
    });
    assert.equal(status, 'failure');
    assert.match(String(completion?.['err_message']), /already has a sample source/);
    assert.equal(completion?.['err_category'], 'validation_error');
  });

  test('leaves no process when its server is killed', async () => {
    void bench.rollOut({ rollout_id: 's-3', metadata: { waits: true } }).catch(() => undefined);
    const pid = await pidOf(bench, 's-3');
    await bench.server.kill();
    await until('its process is gone', () => !existsSync(`/proc/${pid}`));
  });
});
