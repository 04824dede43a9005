/**
 * Trials for a client that speaks as Miles' Harbor plugin does, at a real server with real sandboxes and an engine: first some that end, then those of two
 * instances, of which one is flushed while its agents work. A look at processes, sandboxes and calls of that instance must find nothing soon after.
 */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hostProcessesWith } from '../conformance/environment/looking.ts';
import { startEngineProcess } from '../support/engine-process.ts';
import { MilesPlugin, type PluginAnswer, type PluginKind } from '../support/miles-plugin.ts';
import { ownLeftovers } from '../support/own-leftovers.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { EngineFront } from './engine-front.ts';
import { writeTrialTask } from './trial-servers.ts';

export interface MilesTrialsOptions {
  /** Trials that end by themselves. */
  readonly completed: number;
  /** Trials of each of the two instances that are at work when one is flushed. */
  readonly live: number;
  readonly concurrency: number;
  /** Of the engine, for each call. */
  readonly latencyMs: number;
  readonly plugin: PluginKind;
  /** How long after the flush something of it may be there. */
  readonly goneWithinMs: number;
}

export interface MilesTrialsReport {
  readonly completed: readonly PluginAnswer[];
  readonly flushAnswer: unknown;
  readonly flushMs: number;
  /** Things of the instance a moment before. */
  readonly before: number;
  /** Until the look found nothing; null = it did not. */
  readonly goneMs: number | null;
  readonly flushed: readonly PluginAnswer[];
  readonly others: readonly PluginAnswer[];
  readonly problems: readonly string[];
}

interface Trial {
  readonly name: string;
  readonly marker: string;
  readonly instance: string;
}

const secret = 'the-admin-secret-of-the-proof';
const waitMs = 900_000;

export async function milesTrials(options: MilesTrialsOptions): Promise<MilesTrialsReport> {
  const { completed, live, concurrency, latencyMs } = options;
  const root = await mkdtemp(path.join(os.tmpdir(), 'miles-'));
  const stateDir = path.join(root, 'state');
  await mkdir(stateDir);
  const ended = await (async () => {
    await using engine = await startEngineProcess([
      ...['--policy', path.join(repositoryDir, 'tests/support/policies/hostile-policy.ts')],
      ...['--latency', `constant:${latencyMs}`],
    ]);
    await using front = new EngineFront(engine.url);
    await front.start();
    const tasksDir = path.join(root, 'tasks');
    await using server = await startServeProcess(
      [
        ...['--backend', 'native', '--data-dir', path.join(root, 'data')],
        ...['--agent-server-tasks-dir', tasksDir, '--shutdown-drain-sec', '0'],
        ...['--max-concurrent', String(concurrency), '--max-queue-depth', String(concurrency)],
      ],
      { stateDir, variables: { HARBOR_ADMIN_SECRET: secret } },
    );
    await using plugin = new MilesPlugin(
      { AGENT_SERVER_URL: `${server.url}/`, HARBOR_ADMIN_SECRET: secret },
      options.plugin,
    );
    const start = async (trial: Trial): Promise<void> => {
      await writeTask(path.join(tasksDir, trial.name), trial);
      plugin.run(trial.name, runOf(trial, front));
    };
    const trialsOf = (instance: string, count: number): readonly Trial[] =>
      Array.from({ length: count }, (_, number) => ({
        name: `${instance}-${number}`,
        marker: `${process.pid % 10_000}${instance.length}${String(number).padStart(3, '0')}`,
        instance,
      }));
    const done = trialsOf('first', completed);
    for (const trial of done) await start(trial);
    const firstAnswers = await answersOf(plugin, done);

    const [own, others] = [trialsOf('flushed', live), trialsOf('untouched', live)];
    const haveAsked = (trials: readonly Trial[]) => (): boolean =>
      trials.every(({ name }) => front.firstAt(name) !== null);
    for (const trial of own) await start(trial);
    await waitFor('agents that ask their model', haveAsked(own));
    const ids = await runningIds(server.url);
    for (const trial of others) await start(trial);
    await waitFor('agents of another instance', haveAsked(others));
    const present = async (): Promise<readonly string[]> => {
      const found = await Promise.all(own.map((trial) => thingsOf(trial, front)));
      return found.flat();
    };
    const left = async (): Promise<readonly string[]> => [
      ...(await present()),
      ...(await sandboxesOf(stateDir, ids)),
    ];
    const before = (await left()).length;
    const since = performance.now();
    const [flushAnswer] = await plugin.abort({
      session_server_instance_ids: { 30000: 'flushed' },
    });
    const flushMs = performance.now() - since;
    let found = await left();
    while (found.length > 0 && performance.now() - since < options.goneWithinMs) {
      await delay(20);
      found = await left();
    }
    const goneMs = found.length === 0 ? performance.now() - since : null;
    const problems = found.map((what) => `after ${options.goneWithinMs} ms: ${what}`);
    return {
      ...{ completed: firstAnswers, flushAnswer, flushMs, before, goneMs, problems },
      flushed: await answersOf(plugin, own),
      others: await answersOf(plugin, others),
    };
  })().catch(async (error: unknown) => {
    await rm(root, { recursive: true, force: true });
    throw error;
  });
  const left = await ownLeftovers(root, { stateDir, withinMs: 10_000 });
  await rm(root, { recursive: true, force: true });
  return { ...ended, problems: [...ended.problems, ...left.map((what) => `left: ${what}`)] };
}

function runOf({ name, instance }: Trial, front: EngineFront) {
  const baseUrl = front.apiBase(name).replace(/\/v1$/, '');
  const { host } = new URL(baseUrl);
  return {
    baseUrl,
    metadata: {
      ...{ instance_id: name, agent_name: 'terminus-2', max_seq_len: 1_000_000, a_key: 'of a row' },
      ...{ session_server_id: host, session_server_instance_id: instance },
    },
    requestKwargs: { temperature: 0.8 },
  };
}

async function writeTask(dir: string, { marker }: Trial): Promise<void> {
  await writeTrialTask(dir, {
    backend: 'native',
    instruction: `Stay, with the marker ${marker}.`,
    test: 'echo 1 > /logs/verifier/reward.txt\n',
  });
}

async function answersOf(
  plugin: MilesPlugin,
  trials: readonly Trial[],
): Promise<readonly PluginAnswer[]> {
  await waitFor(`the answers of ${trials[0]?.instance ?? 'nobody'}`, () =>
    trials.every(({ name }) => plugin.answers.has(name)),
  );
  return await plugin.all(trials.map(({ name }) => name));
}

async function thingsOf({ name, marker }: Trial, front: EngineFront): Promise<readonly string[]> {
  const processes = await hostProcessesWith(marker);
  const calls = front.open(name);
  return [
    ...processes.map((line) => `${name}: process ${line}`),
    ...(calls === 0 ? [] : [`${name}: ${calls} model calls`]),
  ];
}

async function runningIds(url: string): Promise<readonly string[]> {
  const answer = await fetch(`${url}/api/v1/rollouts?state=running&limit=500`);
  const { rollouts } = (await answer.json()) as { readonly rollouts: readonly { id: string }[] };
  return rollouts.map(({ id }) => id);
}

/** Their names are those of the trials, cut. */
async function sandboxesOf(stateDir: string, ids: readonly string[]): Promise<readonly string[]> {
  const names = await readdir(path.join(stateDir, 'sandboxes')).catch((): string[] => []);
  return names
    .filter((name) => ids.some((id) => name.startsWith(`slipway-native-${id.slice(0, 24)}`)))
    .map((name) => `sandbox ${name}`);
}

async function waitFor(what: string, isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`it never came: ${what}`);
    await delay(20);
  }
}
