/**
 * `npm run bench -- terminal [round-trips|trials]`: a command's round trip through a terminal (keys sent → output seen) by control mode against
 * exec in both environments, in interleaved rounds; then the cost of 64 terminus-2 trials at once. Needs root, runc and a Docker engine.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openTerminal } from '../src/agents/terminus-2/terminal/open-terminal.ts';
import type { Terminal } from '../src/agents/terminus-2/terminal/terminal.ts';
import { readMachine } from '../src/config/machine.ts';
import { systemClock } from '../src/core/clock.ts';
import { never } from '../src/core/linked-abort.ts';
import { silentLogger } from '../src/core/logger.ts';
import { Scope } from '../src/core/scope.ts';
import type { Environment } from '../src/environments/environment.ts';
import { resolveEnvironment } from '../src/environments/registry.ts';
import { FileLocks } from '../src/store/file/file-lock.ts';
import { agentEnvironment } from '../src/trial/agent-environment.ts';
import { writeTrivialTask } from './environments/trial-times.ts';
import { report, reportWhenLate, type Figure, type Goal } from './report.ts';
import { interleaved, median, quantile, timed } from './samples.ts';
import { sized } from './size.ts';
import { concurrentTrials } from './terminal/concurrent-trials.ts';

const image = 'debian:bookworm-slim';
const rounds = sized(3, 1);
const tripsPerRound = { 'control-mode': sized(150, 60), exec: sized(12, 8) } as const;
const trials = sized(64, 16);

const wanted = process.argv[2] ?? 'all';
const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
const stateDir = path.join(root, 'state');
const figures: Figure[] = [];
const goals: Goal[] = [];
const alive = new Set<Environment>();
const putAway = async (): Promise<void> => {
  await Promise.allSettled([...alive].map((made) => made.destroy()));
  await rm(root, { recursive: true, force: true });
};
reportWhenLate('terminal', () => ({ figures, goals }), putAway);

async function startSandbox(kind: 'local' | 'docker', scope: Scope): Promise<Environment> {
  const { cacheDir } = readMachine(process.env, root);
  const locks = new FileLocks(systemClock);
  const provider = await resolveEnvironment(kind, {
    ...{ stateDir, cacheDir, extraCaBundle: null, kwargs: {}, allowUnsandboxed: false },
    ...{ hostVariables: process.env, clock: systemClock, locks, logger: silentLogger },
  });
  scope.defer(() => provider.close());
  await provider.preflight(never);
  const made = provider.environment({
    name: `slipway-bench-${process.pid}-${kind}`,
    labels: {
      ...{ storeId: 'bench', runId: 'bench', trial: 'bench' },
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    },
    image: { kind: 'prebuilt', reference: image },
    ...{ forceBuild: false, workdir: null, env: {} },
    limits: { cpus: null, memoryMb: null, storageMb: null, pids: null },
    network: { mode: 'no-network' },
    ...{ laterNetworks: [], hostEndpoint: null, extraCaBundle: null, layers: [] },
  });
  alive.add(made);
  scope.defer(async () => {
    await made.destroy();
    alive.delete(made);
  });
  await made.start({ signal: never });
  return made;
}

/** Keys go in, and the screen is looked at until it shows what they cause. */
async function roundTrip(terminal: Terminal, index: number): Promise<void> {
  await terminal.send(`clear; echo $((${index} + 1000000))\n`, { durationSec: 0 }, never);
  const answer = new RegExp(`^${index + 1_000_000}$`, 'm');
  while (!answer.test(await terminal.screen(never)));
}

async function measureRoundTrips(): Promise<void> {
  await using scope = new Scope();
  const samples: Record<string, number[]> = {};
  let index = 0;
  const variant = async (
    kind: 'local' | 'docker',
    transport: 'control-mode' | 'exec',
    sandbox: Environment,
  ): Promise<() => Promise<number>> => {
    const servers = `/tmp/${transport}`;
    await sandbox.exec({ command: `mkdir -m 700 ${servers}` }, never);
    const terminal = await openTerminal(
      {
        environment: agentEnvironment(sandbox, { user: null, env: { TMUX_TMPDIR: servers } }),
        ...{ width: 160, height: 40, env: {}, secrets: [] },
        ...{ clock: systemClock, logger: silentLogger },
        recordingFile: path.join(root, `${kind}-${transport}.cast`),
        transport,
      },
      never,
    );
    scope.defer(() => terminal.close());
    if (terminal.transport !== transport) throw new Error(`${kind} has no ${transport}`);
    await roundTrip(terminal, (index += 1));
    return async () => {
      const times: number[] = [];
      for (let count = 0; count < tripsPerRound[transport]; count += 1) {
        const { ms } = await timed(async () => roundTrip(terminal, (index += 1)));
        times.push(ms);
      }
      (samples[`${kind} round trip by ${transport}`] ??= []).push(...times);
      return median(times);
    };
  };
  const local = await startSandbox('local', scope);
  const docker = await startSandbox('docker', scope);
  const results = await interleaved(rounds, {
    localControl: await variant('local', 'control-mode', local),
    localExec: await variant('local', 'exec', local),
    dockerControl: await variant('docker', 'control-mode', docker),
    dockerExec: await variant('docker', 'exec', docker),
  });
  for (const [name, times] of Object.entries(samples))
    figures.push(
      { name: `${name} p50`, value: quantile(times, 0.5), unit: 'ms' },
      { name: `${name} p99`, value: quantile(times, 0.99), unit: 'ms' },
    );
  const ratio = (over: readonly number[], under: readonly number[]): number =>
    median(over.map((value, round) => value / (under[round] ?? Number.NaN)));
  goals.push(
    {
      name: 'local: exec / control mode',
      ...{ measured: ratio(results.localExec, results.localControl), limit: 10 },
      ...{ direction: 'at least', unit: '×' },
    },
    {
      name: 'docker: exec / control mode',
      ...{ measured: ratio(results.dockerExec, results.dockerControl), limit: 10 },
      ...{ direction: 'at least', unit: '×' },
    },
  );
}

async function measureTrials(): Promise<void> {
  const taskDir = path.join(root, 'trivial');
  await writeTrivialTask(taskDir, image);
  const cost = await concurrentTrials({
    slipway: path.resolve(import.meta.dirname, '../bin/slipway.js'),
    ...{ taskDir, jobsDir: path.join(root, 'jobs'), stateDir, count: trials },
  });
  figures.push(
    { name: `${trials} trials, all of it`, value: cost.wholeSec, unit: 's' },
    { name: 'processor time of ours per trial', value: cost.cpuMsPerTrial, unit: 'ms' },
    { name: 'all agents at work for', value: cost.idleSec, unit: 's' },
    { name: 'processor of ours meanwhile', value: cost.idleCpuShare * 100, unit: '%' },
    { name: 'event-loop lag meanwhile p50', value: cost.idleLagP50Ms, unit: 'ms' },
    { name: 'event-loop lag meanwhile, most', value: cost.idleLagMaxMs, unit: 'ms' },
    { name: 'event-loop lag of the whole run p99', value: cost.wholeLagP99Ms, unit: 'ms' },
  );
  goals.push(
    {
      name: `${trials} trials: peak memory of ours`,
      ...{ measured: cost.peakRssMiB, limit: 512, direction: 'at most', unit: 'MiB' },
    },
    {
      name: `${trials} trials: event-loop lag p99, sandboxes idle`,
      ...{ measured: cost.idleLagP99Ms, limit: 50, direction: 'at most', unit: 'ms' },
    },
  );
}

try {
  if (wanted !== 'trials') await measureRoundTrips();
  if (wanted !== 'round-trips') await measureTrials();
  report('terminal', { figures, goals });
} finally {
  await rm(root, { recursive: true, force: true });
}
