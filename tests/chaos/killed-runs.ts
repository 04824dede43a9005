/**
 * Kills `slipway run` with SIGKILL at seeded moments and starts it again: the next start must remove every sandbox of the dead run
 * soon, leave strangers and a live sibling alone, and finish the job with each trial counted once.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { journalOf } from '../support/journal-names.ts';
import { lastingLeftovers, machineState, type MachineState } from '../support/machine-state.ts';
import { seededRandom } from '../support/random.ts';
import {
  bundledTasksDir,
  slipwayRun,
  startSlipway,
  type CliRun,
  type RunDocument,
} from '../support/slipway-cli.ts';

export interface KilledRunsOptions {
  readonly environment: 'local' | 'docker';
  readonly moments: number;
  readonly seed: number;
  readonly onMoment?: (moment: MomentReport) => void;
  /** The control: the next start does not know the dead run's state folder, so its sandboxes must be seen to stay. */
  readonly isJournalLost?: boolean;
}

export interface MomentReport {
  readonly kind: 'in flight' | 'running' | 'timed';
  /** After this time from its start the run was killed. */
  readonly killedAfterMs: number;
  /** Sandboxes that the dead run's journal held open. */
  readonly open: number;
  /** From the next start until none of them was left. */
  readonly removedAfterMs: number;
  readonly problems: readonly string[];
}

export interface KilledRunsReport {
  readonly moments: readonly MomentReport[];
  readonly problems: readonly string[];
}

const tasks = ['file-answer', 'working-folder', 'non-root-user'];
const attempts = 2;
const removalLimitMs = 10_000;
/** Killed between "create sent" and "id known", with a sandbox known, and at any time. */
const kinds: readonly MomentReport['kind'][] = ['timed', 'in flight', 'running', 'timed'];

export async function killRuns(options: KilledRunsOptions): Promise<KilledRunsReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'killed-runs-'));
  const stateDir = path.join(root, 'state');
  const strangerStateDir = path.join(root, 'stranger-state');
  const stateDirs = [stateDir, strangerStateDir];
  const sleeper = await sleepingTask(root);
  const only = tasks.flatMap((task) => ['-i', task]);
  const argsOf = (job: string): string[] => [
    ...['-p', bundledTasksDir, ...only, '-a', 'oracle', '-e', options.environment],
    ...['-k', String(attempts), '-n', '4', '-o', path.join(root, 'jobs'), '--job-name', job],
  ];
  const sleeperArgs = (job: string): string[] => [
    ...['run', '--json', '--yes', '-p', sleeper, '-a', 'oracle', '-e', options.environment],
    ...['-o', path.join(root, 'jobs'), '--job-name', job],
  ];
  const problems: string[] = [];
  const moments: MomentReport[] = [];
  try {
    const begin = performance.now();
    await slipwayRun(argsOf('whole'), { stateDir });
    const wholeMs = performance.now() - begin;
    const before = await machineState({ stateDirs });

    const stranger = startSlipway(sleeperArgs('stranger'), { stateDir: strangerStateDir });
    const strangerSandbox = await sandboxOf(stranger, strangerStateDir);
    await kill(stranger);
    const sibling = startSlipway(sleeperArgs('sibling'), { stateDir });
    const siblingSandbox = await sandboxOf(sibling, stateDir);

    const random = seededRandom(options.seed);
    for (let index = 0; index < options.moments; index += 1) {
      const kind = kinds[index % kinds.length] ?? 'timed';
      const delayMs = wholeMs * (0.02 + 0.96 * random());
      const moment = await killOnce({
        args: argsOf(`killed-${index}`),
        jobDir: path.join(root, 'jobs', `killed-${index}`),
        stateDir,
        kind,
        delayMs,
        nextStateDir: options.isJournalLost ? path.join(root, `state-${index}`) : stateDir,
      });
      const state = await machineState({ stateDirs });
      const lost = [strangerSandbox, siblingSandbox].filter((name) => !isPresent(state, name));
      const report: MomentReport = {
        ...moment,
        problems: [...moment.problems, ...lost.map((name) => `${name} was touched`)],
      };
      moments.push(report);
      problems.push(...report.problems);
      options.onMoment?.(report);
    }

    if (sibling.child.exitCode !== null) problems.push('the live sibling ended');
    sibling.child.kill('SIGINT');
    await sibling.ended;
    for (const dir of stateDirs) await startSlipway(['cleanup'], { stateDir: dir }).ended;
    const { left } = await lastingLeftovers(before, { stateDirs, withinMs: 3_000 });
    problems.push(...left);
    return { moments, problems };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function killOnce(options: {
  readonly args: readonly string[];
  readonly jobDir: string;
  readonly stateDir: string;
  readonly nextStateDir: string;
  readonly kind: MomentReport['kind'];
  readonly delayMs: number;
}): Promise<MomentReport> {
  const { args, stateDir, kind, jobDir } = options;
  const run = startSlipway(['run', '--json', '--yes', ...args], { stateDir });
  const begin = performance.now();
  if (kind === 'timed') await Promise.race([delay(options.delayMs), run.ended]);
  else
    await waitFor(
      () => {
        const { open, inFlight } = journalOf(stateDir, pidOf(run));
        return kind === 'running' ? open.length > inFlight.length : inFlight.length > 0;
      },
      run,
      30_000,
    );
  const killedAfterMs = performance.now() - begin;
  await kill(run);
  const dead = journalOf(stateDir, pidOf(run)).open;

  const restarted = performance.now();
  const resumed = slipwayRun(args, { stateDir: options.nextStateDir });
  resumed.catch(() => undefined); // awaited below; the removal is watched first
  const removedAfterMs = await untilAbsent(dead, stateDir, {
    since: restarted,
    limitMs: removalLimitMs + 1_000,
  });
  const problems = [...countedOnce(await resumed, await resultsIn(jobDir))];
  if (removedAfterMs > removalLimitMs)
    problems.push(`sandboxes of the dead run were there for ${Math.round(removedAfterMs)} ms`);
  return { kind, killedAfterMs, open: dead.length, removedAfterMs, problems };
}

function countedOnce(document: RunDocument, results: readonly string[]): string[] {
  const expected = tasks.length * attempts;
  const names = new Set(document.trials.map((trial) => trial.trial_name));
  const failed = document.trials.filter((trial) => trial.failure !== null);
  return [
    ...(document.counts.total === expected && document.trials.length === expected
      ? []
      : [`${document.trials.length} of ${document.counts.total} trials, expected ${expected}`]),
    ...(names.size === expected ? [] : [`${names.size} trial names, expected ${expected}`]),
    ...(results.length === expected ? [] : [`${results.length} results, expected ${expected}`]),
    ...failed.map(
      (trial) =>
        `${trial.trial_name}: ${trial.failure?.code ?? ''} ${trial.failure?.message ?? ''}`,
    ),
    ...(document.exit_code === 0 ? [] : [`exit code ${document.exit_code}`]),
  ];
}

async function resultsIn(jobDir: string): Promise<readonly string[]> {
  const names = await readdir(jobDir);
  return names.filter((name) => existsSync(path.join(jobDir, name, 'result.json')));
}

/** How long some sandboxes were there since a moment; Infinity = they stayed. */
export async function untilAbsent(
  names: readonly string[],
  stateDir: string,
  { since, limitMs }: { readonly since: number; readonly limitMs: number },
): Promise<number> {
  for (;;) {
    if (!(await anyPresent(names, stateDir))) return performance.now() - since;
    if (performance.now() - since > limitMs) return Number.POSITIVE_INFINITY;
    await delay(50);
  }
}

/** Whether anything of one of these sandboxes is there. The look costs some processor time. */
export async function anyPresent(names: readonly string[], stateDir: string): Promise<boolean> {
  const state = await machineState({ stateDirs: [stateDir] });
  return names.some((name) => isPresent(state, name));
}

function isPresent(state: MachineState, name: string): boolean {
  const { containers, mounts, cgroups, folders } = state;
  return [containers, mounts, cgroups, folders].some((items) =>
    [...items].some((item) => item.includes(name)),
  );
}

async function sandboxOf(run: CliRun, stateDir: string): Promise<string> {
  await waitFor(
    () => {
      const { open, inFlight } = journalOf(stateDir, pidOf(run));
      return open.length > 0 && inFlight.length === 0;
    },
    run,
    60_000,
  );
  return journalOf(stateDir, pidOf(run)).open[0] ?? '';
}

async function waitFor(isReached: () => boolean, run: CliRun, limitMs: number): Promise<void> {
  const begin = performance.now();
  while (!isReached()) {
    if (run.child.exitCode !== null) {
      const { stdout, stderr } = await run.ended;
      throw new Error(`the run ended before the moment came\n${stdout}\n${stderr}`);
    }
    if (performance.now() - begin > limitMs) throw new Error(`nothing after ${limitMs} ms`);
    await delay(1);
  }
}

async function kill(run: CliRun): Promise<void> {
  if (run.child.exitCode !== null || run.child.signalCode !== null) return;
  const ended = once(run.child, 'exit');
  run.child.kill('SIGKILL');
  await ended;
}

function pidOf(run: CliRun): number {
  return run.child.pid ?? -1;
}

/** A task whose solution sleeps: a run of it lives until it is ended. */
async function sleepingTask(root: string): Promise<string> {
  const dir = path.join(root, 'sleeper');
  for (const folder of ['environment', 'solution', 'tests'])
    await mkdir(path.join(dir, folder), { recursive: true });
  await writeFile(
    path.join(dir, 'task.toml'),
    'schema_version = "1.4"\n[environment]\ndocker_image = "debian:bookworm-slim"\nnetwork_mode = "no-network"\n',
  );
  await writeFile(path.join(dir, 'instruction.md'), 'Sleep.\n');
  await writeFile(path.join(dir, 'solution/solve.sh'), '#!/bin/bash\nsleep 3600\n');
  await writeFile(
    path.join(dir, 'tests/test.sh'),
    '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
  );
  return dir;
}
