import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import type { FolderFiles } from '../fakes/task-folder.ts';
import { combineRewards, meetsMinimum } from '../../src/trial/step-gate.ts';
import { image, runTrial } from './trial-bench.ts';

const provider = new FakeProvider();

/** Two steps that share `/app/ledger`; each verifier counts its lines. */
function ledgerTask(toml = '', more: FolderFiles = {}): FolderFiles {
  const count = '#!/bin/bash\nwc -l < /app/ledger > /logs/verifier/reward.txt\n';
  return {
    'task.toml': `${toml}\n[environment]\ndocker_image = "${image}"\n`,
    'environment/.gitkeep': '',
    'tests/test.sh': count,
    'solution/solve.sh': '#!/bin/bash\nmkdir -p /app; echo line >> /app/ledger\n',
    'steps/one/instruction.md': 'one\n',
    'steps/two/instruction.md': 'two\n',
    ...more,
  };
}
const steps = (one = '', two = ''): string =>
  `[[steps]]\nname = "one"\n${one}\n[[steps]]\nname = "two"\n${two}\n`;

describe('a trial of several steps', () => {
  test('does not wait for ever for a sandbox that does not list its processes', async () => {
    const machine = new FakeMachine();
    let looks = 0; // the first one belongs to the agent's setup
    machine.faults.plant({ at: 'snapshot', does: 'hang', when: () => (looks += 1) > 1 });
    const result = await runTrial({
      provider: new FakeProvider(machine),
      files: ledgerTask(steps()),
      parts: { limits: { ceilingMs: 4_000 } },
    });
    assert.equal(result.slipway?.failure?.code, 'ENVIRONMENT_LOST');
    assert.equal(result.verifier_result, null);
    assert.equal(machine.sandboxes.size, 0);
  });

  test('runs them in one sandbox, archives each and takes the mean', async () => {
    await runTrial({ provider, files: ledgerTask(steps()) }, (bench, result) => {
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1.5 } });
      assert.deepEqual(
        result.step_results?.map(({ step_name, verifier_result }) => [step_name, verifier_result]),
        [
          ['one', { rewards: { reward: 1 } }],
          ['two', { rewards: { reward: 2 } }],
        ],
      );
      assert.equal(bench.file('steps/one/verifier/reward.txt').trim(), '1');
      assert.equal(bench.file('steps/two/verifier/reward.txt').trim(), '2');
      assert.ok(existsSync(path.join(bench.trial.dir, 'steps/two/artifacts/manifest.json')));
      assert.equal(existsSync(path.join(bench.trial.dir, 'verifier')), false);
      assert.equal(result.agent_result, null);
      assert.equal(result.verifier_environment_mode, null);
    });
  });

  test('with the strategy "final" has the last step’s reward', async () => {
    const toml = `multi_step_reward_strategy = "final"\n${steps()}`;
    const result = await runTrial({ provider, files: ledgerTask(toml) });
    assert.deepEqual(result.verifier_result, { rewards: { reward: 2 } });
  });

  test('ends behind a step that misses its threshold', async () => {
    const result = await runTrial({
      provider,
      files: ledgerTask(steps('min_reward = 2.0')),
    });
    assert.equal(result.step_results?.length, 1);
    assert.equal(result.exception_info, null);
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
  });

  test('brings a step’s files, runs its setup and health check, and keeps what setup started', async () => {
    const files = ledgerTask(
      steps('', '[steps.healthcheck]\ncommand = "test -f /tmp/ready"\ninterval_sec = 0.05'),
      {
        'steps/two/workdir/extra.txt': 'extra\n',
        'steps/two/workdir/setup.sh': 'touch /tmp/ready\n',
        'steps/two/tests/test.sh':
          '#!/bin/bash\nif [ -f "$OLDPWD/extra.txt" ] || [ -f extra.txt ]; then echo 7; else echo 0; fi > /logs/verifier/reward.txt\n',
      },
    );
    const result = await runTrial({ provider, files });
    assert.deepEqual(result.step_results?.[1]?.verifier_result, { rewards: { reward: 7 } });
  });

  test('whose setup script fails records that on the step and stops without running the agent', async () => {
    const files = ledgerTask(steps('', ''), { 'steps/one/workdir/setup.sh': 'exit 4\n' });
    const result = await runTrial({ provider, files });
    const [one] = result.step_results ?? [];
    assert.equal(result.step_results?.length, 1);
    assert.equal(result.slipway?.steps[0]?.failure?.code, 'STEP_SETUP_FAILED');
    assert.equal(one?.agent_execution, null);
    assert.equal(result.exception_info, null, 'Harbor keeps step failures from the trial');
    assert.equal(result.slipway.outcome.cause, 'STEP_SETUP_FAILED', 'the outcome names them');
  });

  test('verifies a step whose agent failed, and goes on when there is a verdict', async () => {
    const result = await runTrial({
      provider,
      files: ledgerTask(steps()),
      agent: {
        run: async ({ environment, step }, signal) => {
          const command = 'mkdir -p /app; echo line >> /app/ledger';
          await environment.exec({ command }, signal);
          if (step?.index === 0) throw new Error('confused');
        },
      },
    });
    assert.equal(result.step_results?.length, 2);
    assert.equal(result.slipway?.steps[0]?.failure?.code, 'AGENT_FAILED');
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1.5 } });
  });
});

describe('step rewards', () => {
  test('meet a number by the channel "reward" and a map by each of its channels', () => {
    assert.ok(meetsMinimum(null, null));
    assert.ok(meetsMinimum({ reward: 0.5 }, 0.5));
    assert.ok(!meetsMinimum({ other: 1 }, 0.5));
    assert.ok(!meetsMinimum(null, 0));
    assert.ok(meetsMinimum({ a: 1, b: 0 }, { a: 1, b: 0 }));
    assert.ok(!meetsMinimum({ a: 1 }, { a: 1, b: 0 }));
  });

  test('combine by channel, a missing channel counting 0, steps without a verdict left out', () => {
    assert.deepEqual(combineRewards([{ a: 1 }, null, { a: 0, b: 1 }], 'mean'), { a: 0.5, b: 0.5 });
    assert.deepEqual(combineRewards([{ a: 1 }, null], null), { a: 1 });
    assert.equal(combineRewards([{ a: 1 }, null], 'final'), null);
    assert.equal(combineRewards([null, null], 'mean'), null);
  });
});
