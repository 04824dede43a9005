import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import type { Task } from '../../src/tasks/task.ts';
import {
  agentLimitMs,
  agentSetupLimitMs,
  environmentLimitMs,
  healthcheckLimitMs,
  verifierLimitMs,
} from '../../src/trial/timeouts.ts';
import { trialConfigSchema, type TrialConfig } from '../../src/wire/harbor/trial-config.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';

const config = (fields: Record<string, unknown> = {}): TrialConfig =>
  trialConfigSchema.parse({ task: { path: '/t' }, ...fields });

async function taskWith(toml: string): Promise<Task> {
  await using folder = await taskFolder({
    ...plainTask,
    'task.toml': toml,
    'steps/one/instruction.md': 'one\n',
  });
  return await loadTask({ dir: folder.dir, signal: never });
}

const limited = '[agent]\ntimeout_sec = 100.0\n[verifier]\ntimeout_sec = 50.0\n';

describe('the limits of a trial', () => {
  const agentRows: readonly (readonly [string, Record<string, unknown>, number | null])[] = [
    ['the task’s', {}, 100_000],
    ['an override before the task’s', { agent: { override_timeout_sec: 30 } }, 30_000],
    ['0 as no override', { agent: { override_timeout_sec: 0 } }, 100_000],
    ['the smaller of limit and maximum', { agent: { max_timeout_sec: 20 } }, 20_000],
    ['0 as no maximum', { agent: { max_timeout_sec: 0 } }, 100_000],
    [
      'multiplied after the maximum',
      { agent: { max_timeout_sec: 20 }, timeout_multiplier: 2 },
      40_000,
    ],
    [
      'the own multiplier instead of the general one',
      { timeout_multiplier: 2, agent_timeout_multiplier: 0.5 },
      50_000,
    ],
  ];
  for (const [title, fields, expected] of agentRows)
    test(`agent: ${title}`, async () =>
      assert.equal(agentLimitMs(config(fields), await taskWith(limited), null), expected));

  test('agent: none without a limit anywhere, the maximum where there is one', async () => {
    const task = await taskWith('');
    assert.equal(agentLimitMs(config(), task, null), null);
    assert.equal(agentLimitMs(config({ agent: { max_timeout_sec: 5 } }), task, null), 5_000);
  });

  test('a step inherits the agent’s limit and not the verifier’s', async () => {
    const task = await taskWith(`${limited}[[steps]]\nname = "one"\n`);
    const [step = null] = task.steps;
    assert.equal(agentLimitMs(config(), task, step), 100_000);
    assert.equal(verifierLimitMs(config(), task, step), 600_000);
  });

  test('verifier: override, maximum and multiplier', async () => {
    const task = await taskWith(limited);
    assert.equal(verifierLimitMs(config(), task, null), 50_000);
    const fields = {
      verifier: { override_timeout_sec: 40, max_timeout_sec: 10 },
      verifier_timeout_multiplier: 3,
    };
    assert.equal(verifierLimitMs(config(fields), task, null), 30_000);
  });

  test('environment and agent set-up: defaults and multipliers', async () => {
    const task = await taskWith('');
    assert.equal(environmentLimitMs(config(), task), 600_000);
    assert.equal(
      environmentLimitMs(config({ environment_build_timeout_multiplier: 2 }), task),
      1_200_000,
    );
    assert.equal(agentSetupLimitMs(config()), 360_000);
    const fields = { agent: { override_setup_timeout_sec: 10 }, timeout_multiplier: 2 };
    assert.equal(agentSetupLimitMs(config(fields)), 20_000);
  });

  test('a health check may take as long as its own rules say', () => {
    const check = {
      command: 'true',
      intervalMs: 1_000,
      timeoutMs: 2_000,
      startPeriodMs: 10_000,
      startIntervalMs: 500,
      retries: 3,
    };
    assert.equal(healthcheckLimitMs(check), 10_000 + 500 + 2_000 + 3 * 3_000 + 5_000);
  });
});
