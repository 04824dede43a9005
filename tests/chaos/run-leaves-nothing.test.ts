import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { leftovers, machineState } from '../support/machine-state.ts';
import { runLeavesNothing } from './run-leaves-nothing.ts';

describe('a run of bundled tasks', () => {
  for (const environment of ['local', 'docker'] as const)
    it(`gives every reward and leaves nothing behind in ${environment}`, async () => {
      const report = await runLeavesNothing({
        environment,
        attempts: 1,
        concurrency: 8,
        tasks: ['file-answer', 'no-network', 'planted-reward', 'separate-verifier'],
      });
      assert.deepEqual(report.problems, []);
      assert.equal(report.trials, 4);
    });
});

it('control: the counting sees a process of ours that was left', async () => {
  const before = await machineState({ stateDirs: [] });
  const child = spawn('sh', ['-c', 'echo ready; sleep 30; : slipway-left']);
  try {
    await once(child.stdout, 'data');
    const after = await machineState({ stateDirs: [] });
    assert.ok(leftovers(before, after).some((line) => line.includes(`${child.pid ?? 'none'} `)));
  } finally {
    child.kill('SIGKILL');
  }
});
