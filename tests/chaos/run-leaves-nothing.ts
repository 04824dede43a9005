/** Runs bundled tasks several times over and compares rewards with what the tasks promise, and the machine with what it was before. */
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { readMachine } from '../../src/config/machine.ts';
import { readExpectations } from '../../scripts/quickstart/expectations.js';
import { counts, lastingLeftovers, machineState } from '../support/machine-state.ts';
import { bundledTasksDir, slipwayRun, type RunDocument } from '../support/slipway-cli.ts';

export interface LeavesNothingReport {
  readonly trials: number;
  /** Wrong rewards, unexpected failures, and things left on the machine, one line each. */
  readonly problems: readonly string[];
  readonly before: string;
  readonly after: string;
}

export async function runLeavesNothing(options: {
  readonly environment: 'local' | 'docker';
  readonly attempts: number;
  readonly concurrency: number;
  /** Folder names under `tasks/`; null = all. */
  readonly tasks: readonly string[] | null;
}): Promise<LeavesNothingReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'leaves-nothing-'));
  const stateDir = path.join(root, 'state');
  try {
    const cacheDir = await coldCache(root);
    const before = await machineState({ stateDirs: [stateDir] });
    const only = (options.tasks ?? []).flatMap((task) => ['-i', task]);
    const document = await slipwayRun(
      [
        ...['-p', bundledTasksDir, '-a', 'oracle', '-e', options.environment, ...only],
        ...['-k', String(options.attempts), '-n', String(options.concurrency)],
        ...['-o', path.join(root, 'jobs'), '--job-name', 'leaves-nothing'],
      ],
      { stateDir, variables: { SLIPWAY_CACHE_DIR: cacheDir } },
    );
    const { left, after } = await lastingLeftovers(before, {
      stateDirs: [stateDir],
      withinMs: 3_000,
    });
    return {
      trials: document.trials.length,
      problems: [...wrongRewards(document, options), ...left],
      before: counts(before),
      after: counts(after),
    };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** A cache that has only the base image, so that what the first pull, unpacking or build leaves is counted too. */
async function coldCache(root: string): Promise<string> {
  const cacheDir = path.join(root, 'cache');
  await mkdir(cacheDir);
  const own = readMachine(process.env, root).cacheDir;
  for (const part of ['base-images', 'docker-config'])
    await symlink(path.join(own, part), path.join(cacheDir, part));
  return cacheDir;
}

function wrongRewards(
  document: RunDocument,
  options: {
    readonly environment: string;
    readonly attempts: number;
    readonly tasks: readonly string[] | null;
  },
): string[] {
  const expectations = readExpectations().filter(
    ({ task }) => options.tasks === null || options.tasks.includes(task),
  );
  return expectations.flatMap((expected) => {
    const trials = document.trials.filter((trial) => trial.task_name === expected.name);
    const isRefused = expected.refusedBy.includes(options.environment);
    const wrong = trials.filter((trial) =>
      isRefused
        ? trial.failure?.code !== 'CAPABILITY_UNSUPPORTED' || trial.rewards !== null
        : trial.failure !== null ||
          JSON.stringify(sorted(trial.rewards)) !== JSON.stringify(sorted(expected.oracle)),
    );
    return [
      ...(trials.length === options.attempts
        ? []
        : [`${expected.name}: ${trials.length} trials, expected ${options.attempts}`]),
      ...wrong.map(
        (trial) =>
          `${trial.trial_name}: ${JSON.stringify(trial.rewards)} ${trial.failure?.code ?? ''} ${trial.failure?.message ?? ''}`,
      ),
    ];
  });
}

function sorted(rewards: Readonly<Record<string, number>> | null): [string, number][] | null {
  return rewards === null ? null : Object.entries(rewards).sort(([a], [b]) => (a < b ? -1 : 1));
}
