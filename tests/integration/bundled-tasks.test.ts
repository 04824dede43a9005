import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { judgeTrial, readExpectations } from '../../scripts/quickstart/expectations.js';
import { bundledTasksDir, slipwayRun } from '../support/slipway-cli.ts';

const agents = ['oracle', 'nop'] as const;
const expectations = readExpectations();

/** Why an environment cannot run on this machine; false when it can. */
const skips = {
  local: works('runc', '--version') || works('crun', '--version') ? false : 'no runc and no crun',
  docker: works('docker', 'info') ? false : 'no Docker engine answers',
};

function works(program: string, ...argv: readonly string[]): boolean {
  try {
    execFileSync(program, argv, { stdio: 'ignore', timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

for (const environment of ['local', 'docker'] as const) {
  for (const agent of agents) {
    describe(
      `the bundled tasks with ${agent} in ${environment}`,
      {
        skip: skips[environment],
        timeout: 300_000,
      },
      () => {
        let root = '';
        const trialDirs = new Map<string, string>();

        before(async () => {
          root = await mkdtemp(path.join(os.tmpdir(), 'slipway-bundled-'));
          const document = await slipwayRun(
            [
              ...['--path', bundledTasksDir, '--agent', agent, '--env', environment],
              ...['--jobs-dir', path.join(root, 'jobs'), '--job-name', 'bundled'],
            ],
            { stateDir: path.join(root, 'state') },
          );
          for (const trial of document.trials) {
            trialDirs.set(trial.task_name, path.join(document.job.dir, trial.trial_name));
          }
        });

        after(async () => {
          await rm(root, { recursive: true, force: true });
        });

        for (const expected of expectations) {
          const isRefused = expected.refusedBy.includes(environment);
          const rewards = isRefused ? 'is refused' : `gives ${JSON.stringify(expected[agent])}`;
          it(`${expected.task} ${rewards}`, () => {
            const trialDir = trialDirs.get(expected.name);
            assert.ok(trialDir, 'it has no trial');
            const verdict = judgeTrial(expected, agent, environment, trialDir);
            assert.deepEqual(verdict, { isRefused, problems: [] });
          });
        }
      },
    );
  }
}
