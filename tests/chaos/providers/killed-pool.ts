/**
 * Kills `slipway run` with SIGKILL while its trials run in sandboxes of a provider's fake and its pool is full or being filled, and starts it again: from a moment
 * after the next start on, the service's own list has no sandbox without a live run that owns it. The sandboxes are real ones of this machine.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { never } from '../../../src/core/linked-abort.ts';
import { baseImage, LocalBench } from '../../environments/local/local-bench.ts';
import { ServiceFaults } from '../../fakes/sandbox-host/service-faults.ts';
import { runIdOf } from '../../support/journal-names.ts';
import { startSlipway, type CliRun } from '../../support/slipway-cli.ts';
import { openFakeService, type FakeService, type RemoteKind } from './fake-services.ts';

export interface KilledPoolOptions {
  readonly kind: RemoteKind;
  readonly kills: number;
  /** Trials at once, and sandboxes of the pool besides. */
  readonly running: number;
  readonly poolSize: number;
  readonly createsPerSecond: number;
  readonly createMs: number;
  readonly limitMs: number;
  /** The control: the next start has another state folder, so that the sandboxes of the dead run must be seen to stay. */
  readonly isJournalLost?: boolean;
  readonly onKill?: (kill: KillReport) => void;
}

export interface KillReport {
  readonly moment: 'full' | 'filling';
  /** At the kill: in the service's list, those of them that were being made, and trials whose agent ran. */
  readonly sandboxes: number;
  readonly creating: number;
  readonly agents: number;
  /** From the next start until each sandbox had a live owner; Infinity = never within the limit. */
  readonly goneMs: number;
}

export interface KilledPoolReport {
  readonly kills: readonly KillReport[];
  readonly problems: readonly string[];
}

const startMs = 120_000;
const endMs = 60_000;
const lookMs = 50;

export async function killPools(options: KilledPoolOptions): Promise<KilledPoolReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'killed-pool-'));
  const local = new LocalBench();
  const sandboxes = local.provider({ runtime: 'runc' });
  await sandboxes.preflight(never);
  const { createsPerSecond, createMs } = options;
  const service = await openFakeService(options.kind, {
    sandboxes,
    limits: { createsPerSecond, createMs },
    faults: new ServiceFaults({ 'failed-create': 0.05, 'lost-answer': 0.02 }, 11),
  });
  try {
    const killed = await killEach(options, { service, root });
    const names = (): readonly string[] => service.sandboxes().map(({ name }) => name);
    if (options.isJournalLost === true) return killed;
    const problems = [...killed.problems, ...names().map((name) => `${name} stayed to the end`)];
    return { ...killed, problems };
  } finally {
    await service[Symbol.asyncDispose]();
    await sandboxes.close();
    local[Symbol.dispose]();
    await rm(root, { recursive: true, force: true });
  }
}

async function killEach(
  options: KilledPoolOptions,
  { service, root }: { readonly service: FakeService; readonly root: string },
): Promise<KilledPoolReport> {
  const { running, poolSize } = options;
  const task = await sleepingTask(root);
  const stateDirOf = (life: number): string =>
    path.join(root, `state-${options.isJournalLost === true ? life : 0}`);
  const start = (life: number): CliRun =>
    startSlipway(
      [
        ...['run', '--json', '--yes', '-p', task.dir, '-a', 'oracle', '-e', options.kind],
        ...['-k', String(2 * (running + poolSize)), '-n', String(running)],
        ...['--ek', `pool_size=${poolSize}`],
        ...['--ek', `creates_per_second=${options.createsPerSecond}`],
        ...['-o', path.join(root, 'jobs'), '--job-name', `job-${stateDirOf(life).slice(-1)}`],
      ],
      { stateDir: stateDirOf(life), variables: service.variables },
    );
  const kills: KillReport[] = [];
  const problems: string[] = [];
  let run = start(0);
  try {
    for (let life = 1; life <= options.kills; life += 1) {
      const moment = life % 2 === 1 ? 'full' : 'filling';
      const isReached = async (): Promise<boolean> => {
        const made = countOf(service);
        if (moment === 'filling') return made.creating >= 2 && made.all > running;
        const isFull = made.all >= running + poolSize && made.creating === 0;
        return isFull && (await agentsOf(task.mark)) >= running;
      };
      await reached(isReached, run);
      if (strays(service, { stateDir: stateDirOf(life - 1), run }).names.length > 0)
        problems.push('a sandbox of a dead run came back');
      const { all, creating } = countOf(service);
      const agents = await agentsOf(task.mark);
      await end(run, 'SIGKILL');
      const restartedMs = performance.now();
      run = start(life);
      const goneMs = await untilOwned(service, {
        ...{ stateDir: stateDirOf(life), run, limitMs: options.limitMs },
        sinceMs: restartedMs,
      });
      const kill = { moment, sandboxes: all, creating, agents, goneMs } as const;
      kills.push(kill);
      options.onKill?.(kill);
      if (goneMs === Infinity)
        problems.push(
          `sandboxes without an owner were there ${options.limitMs} ms after the next start`,
        );
    }
    if (options.isJournalLost === true) return { kills, problems };
    const { exitCode, stderr } = await end(run, 'SIGINT');
    if (exitCode !== 130) problems.push(`the last run ended with ${exitCode}: ${stderr}`);
    return { kills, problems };
  } finally {
    await end(run, 'SIGKILL');
  }
}

/** How long sandboxes of others than the new run were there: until its cleaning is done and its journal open. */
async function untilOwned(
  service: FakeService,
  of: {
    readonly stateDir: string;
    readonly run: CliRun;
    readonly sinceMs: number;
    readonly limitMs: number;
  },
): Promise<number> {
  for (;;) {
    const { runId, names } = strays(service, of);
    if (names.length === 0 && runId !== null) return performance.now() - of.sinceMs;
    if (performance.now() - of.sinceMs > of.limitMs) return Infinity;
    await assertRuns(of.run);
    await delay(lookMs);
  }
}

/** The run of the process, and what the service has of others. While a start cleans up it has no run yet. */
function strays(
  service: FakeService,
  of: { readonly stateDir: string; readonly run: CliRun },
): { readonly runId: string | null; readonly names: readonly string[] } {
  const listed = service.sandboxes(); // before the journal: a run that begins meanwhile is not missed
  const own = runIdOf(of.stateDir, of.run.child.pid ?? -1);
  const names = listed.filter(({ runId }) => runId === null || runId !== own);
  return { runId: own, names: names.map(({ name }) => name) };
}

function countOf({ host }: FakeService): { readonly all: number; readonly creating: number } {
  const all = host.list();
  return { all: all.length, creating: all.filter(({ state }) => state === 'creating').length };
}

async function reached(isReached: () => Promise<boolean>, run: CliRun): Promise<void> {
  const beganMs = performance.now();
  while (!(await isReached())) {
    await assertRuns(run);
    if (performance.now() - beganMs > startMs) throw new Error(`not reached in ${startMs} ms`);
    await delay(lookMs);
  }
}

async function assertRuns(run: CliRun): Promise<void> {
  if (run.child.exitCode === null) return;
  const { stdout, stderr } = await run.ended;
  throw new Error(`the run ended before its time\n${stdout}\n${stderr}`);
}

async function end(
  run: CliRun,
  signal: 'SIGKILL' | 'SIGINT',
): Promise<{ readonly exitCode: number | null; readonly stderr: string }> {
  if (run.child.exitCode === null && run.child.signalCode === null) {
    const ended = once(run.child, 'exit');
    run.child.kill(signal);
    await Promise.race([ended, delay(endMs, undefined, { ref: false })]);
    run.child.kill('SIGKILL');
  }
  return await run.ended;
}

/** Agents that sleep in their sandboxes now. */
async function agentsOf(mark: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
  );
  return lines.filter((line) => line === `sleep\0${mark}\0`).length;
}

async function sleepingTask(
  root: string,
): Promise<{ readonly dir: string; readonly mark: string }> {
  const dir = path.join(root, 'sleeper');
  const mark = String(randomInt(3_600, 1_000_000));
  for (const folder of ['environment', 'solution', 'tests'])
    await mkdir(path.join(dir, folder), { recursive: true });
  await writeFile(
    path.join(dir, 'task.toml'),
    `schema_version = "1.4"\n[environment]\ndocker_image = "${baseImage}"\n`,
  );
  await writeFile(path.join(dir, 'instruction.md'), 'Sleep.\n');
  await writeFile(path.join(dir, 'solution/solve.sh'), `#!/bin/bash\nsleep ${mark}\n`);
  await writeFile(path.join(dir, 'tests/test.sh'), '#!/bin/bash\nexit 1\n');
  return { dir, mark };
}
