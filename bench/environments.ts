/**
 * `npm run bench -- environments`: start, exec, destroy and whole-trial cost of `local` and `docker`, side by side with runc by hand, the Docker
 * CLI, and the compose sequence that a trial costs today. Three interleaved rounds; ratios are medians over rounds.
 * Needs root, runc, a Docker engine and compose.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { systemClock } from '../src/core/clock.ts';
import { never } from '../src/core/linked-abort.ts';
import { silentLogger } from '../src/core/logger.ts';
import { readMachine } from '../src/config/machine.ts';
import type { Environment, EnvironmentProvider } from '../src/environments/environment.ts';
import { resolveEnvironment } from '../src/environments/registry.ts';
import { FileLocks } from '../src/store/file/file-lock.ts';
import { BareRuntime } from './environments/bare-runtime.ts';
import { runComposeSequence } from './environments/compose-sequence.ts';
import { DockerCliContainer } from './environments/docker-cli.ts';
import { trialTimes, writeTrivialTask } from './environments/trial-times.ts';
import { report, reportWhenLate, type Figure } from './report.ts';
import { interleaved, median, quantile, timed } from './samples.ts';
import { sized } from './size.ts';

const image = 'debian:bookworm-slim';
const rounds = sized(3, 1);
const startsPerRound = sized(12, 4);
const execsPerRound = sized(15, 8);
const trialsPerRound = sized(3, 2);
const slipway = path.resolve(import.meta.dirname, '../bin/slipway.js');
const line = 'echo ok';

const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
const machine = readMachine(process.env, root);
const stateDir = path.join(root, 'state');
const clock = systemClock;
const locks = new FileLocks(clock);
const providers = {
  local: await provider('local'),
  docker: await provider('docker'),
};
let next = 0;

async function provider(name: 'local' | 'docker'): Promise<EnvironmentProvider> {
  const settings = { stateDir, cacheDir: machine.cacheDir, extraCaBundle: null, kwargs: {} };
  const ports = { hostVariables: process.env, clock, locks, logger: silentLogger };
  const made = await resolveEnvironment(name, { ...settings, ...ports, allowUnsandboxed: false });
  await made.preflight(never);
  return made;
}

/** Sandboxes that may be there. */
const alive = new Set<Pick<Startable, 'destroy'>>();

function environment(kind: keyof typeof providers): Environment {
  next += 1;
  const made = providers[kind].environment({
    name: `slipway-bench-${process.pid}-${next}`,
    labels: {
      storeId: 'bench',
      runId: 'bench',
      trial: 'bench',
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    },
    image: { kind: 'prebuilt', reference: image },
    forceBuild: false,
    workdir: null,
    env: {},
    limits: { cpus: null, memoryMb: null, storageMb: null, pids: null },
    network: { mode: 'no-network' },
    laterNetworks: [],
    hostEndpoint: null,
    extraCaBundle: null,
    layers: [],
  });
  alive.add(made);
  return made;
}

interface Startable {
  readonly exec: (line: string) => Promise<unknown>;
  readonly destroy: () => Promise<unknown>;
}

/** Samples of all rounds by figure, and each round's medians for ratios. */
const samples: Record<string, number[]> = {};
function sample(name: string, ms: number): void {
  (samples[name] ??= []).push(ms);
}

async function measureOne(
  name: string,
  start: () => Promise<{ ms: number; made: Startable }>,
): Promise<{ start: number; exec: number }> {
  const starts: number[] = [];
  const execs: number[] = [];
  for (let index = 0; index < startsPerRound; index += 1) {
    const { ms, made } = await start();
    alive.add(made);
    starts.push(ms);
    sample(`${name} start`, ms);
    if (index === 0)
      for (let count = 0; count < execsPerRound; count += 1) {
        const exec = await timed(async () => made.exec(line));
        execs.push(exec.ms);
        sample(`${name} exec`, exec.ms);
      }
    const destroy = await timed(async () => made.destroy());
    alive.delete(made);
    sample(`${name} destroy`, destroy.ms);
  }
  return { start: median(starts), exec: median(execs) };
}

async function startOurs(kind: keyof typeof providers): Promise<{ ms: number; made: Startable }> {
  const made = environment(kind);
  const { ms } = await timed(async () => made.start({ signal: never }));
  return {
    ms,
    made: {
      exec: async (command) => made.exec({ command }, never),
      destroy: async () => made.destroy(),
    },
  };
}

async function controlExec(kind: keyof typeof providers): Promise<number> {
  await using made = disposable(environment(kind));
  await made.environment.start({ signal: never });
  const channel = await made.environment.openControl({ signal: never });
  const times: number[] = [];
  for (let count = 0; count < 10 * execsPerRound; count += 1) {
    const { ms } = await timed(async () => channel.exec({ command: line }, never));
    times.push(ms);
    sample(`${kind} exec over the control channel`, ms);
  }
  await channel.close();
  return median(times);
}

function disposable(made: Environment): AsyncDisposable & { readonly environment: Environment } {
  return {
    environment: made,
    [Symbol.asyncDispose]: async () => {
      await made.destroy();
    },
  };
}

/** Sandboxes started and removed per second with eight at a time. */
async function startRate(kind: keyof typeof providers): Promise<number> {
  const count = 24;
  const all = Array.from({ length: count }, () => environment(kind));
  const queue = [...all];
  const worker = async (): Promise<void> => {
    for (let made = queue.pop(); made; made = queue.pop()) await made.start({ signal: never });
  };
  const { ms } = await timed(async () => Promise.all(Array.from({ length: 8 }, worker)));
  await Promise.all(all.map(async (made) => made.destroy()));
  return count / (ms / 1000);
}

const timesSoFar = (): readonly Figure[] =>
  Object.entries(samples).flatMap(([name, times]) => [
    { name: `${name} p50`, value: quantile(times, 0.5), unit: 'ms' },
    { name: `${name} p99`, value: quantile(times, 0.99), unit: 'ms' },
  ]);
const putAway = async (): Promise<void> => {
  await Promise.allSettled([...alive].map((made) => made.destroy()));
  for (const made of Object.values(providers)) await made.close();
  await rm(root, { recursive: true, force: true });
};
reportWhenLate('environments', () => ({ figures: timesSoFar(), goals: [] }), putAway);

try {
  for (const kind of ['local', 'docker'] as const) await (await startOurs(kind)).made.destroy();
  const bare = await BareRuntime.prepare(path.join(root, 'bare'), image);
  await using kept = disposable(environment('local')); // the configuration names files of it
  await kept.environment.start({ signal: never });
  const keptDir = path.join(stateDir, 'sandboxes', kept.environment.name);
  const ours = await readFile(path.join(keptDir, 'config.json'), 'utf8');
  const taskDir = path.join(root, 'trivial');
  await writeTrivialTask(taskDir, image);
  const trials = (environmentName: 'local' | 'docker') => async (): Promise<number> => {
    next += 1;
    const options = { slipway, taskDir, jobsDir: path.join(root, 'jobs'), stateDir };
    const jobName = `${environmentName}-${next}`;
    const count = trialsPerRound;
    const times = await trialTimes({ ...options, environment: environmentName, jobName, count });
    for (const ms of times) sample(`${environmentName} whole trial`, ms);
    return median(times);
  };
  const perRound: Record<string, { start: number; exec: number }[]> = {};
  const started =
    (name: string, start: () => Promise<{ ms: number; made: Startable }>) =>
    async (): Promise<number> => {
      const measured = await measureOne(name, start);
      (perRound[name] ??= []).push(measured);
      return measured.start;
    };
  await trials('local')();
  await trials('docker')();
  const results = await interleaved(rounds, {
    bareStart: started('runc by hand', async () => {
      const { ms, container } = await bare.start(null);
      return { ms, made: container };
    }),
    sameStart: started('runc by hand, our configuration', async () => {
      const { ms, container } = await bare.start(ours);
      return { ms, made: container };
    }),
    localStart: started('local', async () => startOurs('local')),
    cliStart: started('docker CLI', async () => {
      const { ms, container } = await DockerCliContainer.start(image);
      return { ms, made: container };
    }),
    dockerStart: started('docker', async () => startOurs('docker')),
    localControl: async () => controlExec('local'),
    dockerControl: async () => controlExec('docker'),
    localRate: async () => startRate('local'),
    dockerRate: async () => startRate('docker'),
    localTrial: trials('local'),
    dockerTrial: trials('docker'),
    composeTrial: async () => {
      next += 1;
      const dockerConfigDir =
        process.env['DOCKER_CONFIG'] ?? path.join(machine.cacheDir, 'docker-config');
      const project = `slipway-bench-${process.pid}-${next}`;
      const { ms } = await timed(async () =>
        runComposeSequence({ taskDir, dockerConfigDir, project }),
      );
      sample('compose sequence', ms);
      return ms;
    },
  });

  const cliExec = (perRound['docker CLI'] ?? []).map((round) => round.exec);
  const ratio = (over: readonly number[], under: readonly number[]): number =>
    median(over.map((value, round) => value / (under[round] ?? Number.NaN)));
  const figures = [
    ...timesSoFar(),
    { name: 'local starts, 8 at once', value: median(results.localRate), unit: '/s' },
    { name: 'docker starts, 8 at once', value: median(results.dockerRate), unit: '/s' },
  ];
  report('environments', {
    figures,
    goals: [
      {
        name: 'local start p50 / runc by hand',
        ...{ measured: ratio(results.localStart, results.bareStart), limit: 1.5 },
        ...{ direction: 'at most', unit: '×' },
      },
      {
        name: 'docker exec (CLI) / local control channel',
        ...{ measured: ratio(cliExec, results.localControl), limit: 20 },
        ...{ direction: 'at least', unit: '×' },
      },
      {
        name: 'docker exec (CLI) / docker control channel',
        ...{ measured: ratio(cliExec, results.dockerControl), limit: 20 },
        ...{ direction: 'at least', unit: '×' },
      },
      {
        name: 'compose sequence / local whole trial',
        ...{ measured: ratio(results.composeTrial, results.localTrial), limit: 5 },
        ...{ direction: 'at least', unit: '×' },
      },
    ],
  });
} finally {
  for (const made of Object.values(providers)) await made.close();
  await rm(root, { recursive: true, force: true });
}
