/**
 * Kills `slipway serve` with SIGKILL at seeded moments, each time with rollouts live, and starts it again on the same data folder; where workers execute, one of them
 * dies every other time instead. Meanwhile a controller goes on submitting, cancelling and taking callbacks, of which it loses some itself. At the end every rollout must
 * have had one end.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isRunning, processOwner } from '../../src/store/file/run-owner.ts';
import type { RunOwner } from '../../src/store/sandbox-journal.ts';
import { journalOf, type JournalView } from '../support/journal-names.ts';
import { seededRandom } from '../support/random.ts';
import { RolloutService, type QueueKind } from '../support/rollout-service.ts';
import type { ServeProcess } from '../support/serve-process.ts';
import { bundledTasksDir, repositoryDir } from '../support/slipway-cli.ts';
import { until } from '../support/until.ts';
import { anyPresent, untilAbsent } from './killed-runs.ts';
import { LiveLoad, type PlannedWork } from './live-load.ts';
import { judgeRollout } from './rollout-evidence.ts';
import { addGarbage, addHalfRecord } from './store-garbage.ts';
import { inspectStore } from './store-inspection.ts';
import { harborTable, quickTask, writeTrialTask, type TrialBackend } from './trial-servers.ts';

export interface KilledServerOptions {
  /** `native`: an oracle in local sandboxes; `harbor`: a workflow in such. */
  readonly backend?: KilledBackend;
  /** Default: the server's memory. */
  readonly queue?: QueueKind;
  readonly kills: number;
  /** Rollouts that are under way all the time. On the backend `null` half of them run, elsewhere all. */
  readonly live: number;
  readonly seed: number;
  /** Moments, one after the other and again; default: all kinds. */
  readonly kinds?: readonly KillKind[];
  /** The control: what was not delivered is forgotten. */
  readonly isOutboxOff?: boolean;
  /** How long the last server may take to bring everything to its end. */
  readonly endLimitMs?: number;
  /** How long sandboxes of a dead server may be there after the next start. */
  readonly orphanLimitMs?: number;
  readonly onKill?: (kill: KillReport) => void;
}

export type KilledBackend = 'null' | TrialBackend;

export interface KillReport {
  readonly kind: KillKind;
  /** `server`: what is asked over HTTP. */
  readonly victim: 'server' | 'worker';
  /** After this time from the start of the process. */
  readonly afterMs: number;
  readonly live: number;
  /** What was put behind the last commit of the store's log. */
  readonly garbage: string | null;
  /** From the next start until it was ready, and what it took up. */
  readonly readyMs: number;
  readonly recovered: number;
  /** Sandboxes that the journals held open of whoever worked for the dead one, and those of them whose create call was on its way. */
  readonly sandboxes: number;
  readonly inFlight: number;
  /** From the next start until none of them was left. */
  readonly goneMs: number;
}

/** `creating`: between "create sent" and "id known". */
export type KillKind = 'timed' | 'callback' | 'cancel' | 'starting' | 'creating';

export interface KilledServerReport {
  readonly kills: readonly KillReport[];
  readonly rollouts: number;
  readonly cancelled: number;
  /** Ends that say that the server died. */
  readonly interrupted: number;
  /** Callbacks that came more than once. */
  readonly resent: number;
  readonly problems: readonly string[];
}

const allKinds: readonly KillKind[] = ['timed', 'callback', 'starting', 'timed', 'cancel'];

/** A worker that is missed for so long, and half as long again, is dead. */
const leaseSec = 3;
/** A kill at a callback lets at most so many pass. */
const callbacksBefore: Record<KilledBackend, number> = { null: 40, native: 6, harbor: 6 };
/** Before a kill at any moment: as long as it takes until all sandboxes are there. */
const longestRestMs: Record<KilledBackend, number> = { null: 900, native: 5_000, harbor: 8_000 };

export async function killServer(options: KilledServerOptions): Promise<KilledServerReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'killed-server-'));
  const random = seededRandom(options.seed);
  const { backend = 'null', orphanLimitMs = 10_000 } = options;
  const setting = await settingOf(backend, root);
  const running = backend === 'null' ? Math.ceil(options.live / 2) : options.live;
  const program = path.join(import.meta.dirname, 'serve-without-outbox.ts');
  const service = await RolloutService.start({
    ...{ queue: options.queue ?? 'memory', stateDir: root, maxConcurrent: running, leaseSec },
    flags: [...setting.flags, '--shutdown-drain-sec', '1'],
    frontFlags: ['--max-queue-depth', String(options.live)],
    ...(options.isOutboxOff === true && { program: [program] }),
  });
  const { dataDir } = service;
  const kills: KillReport[] = [];
  const load = new LiveLoad({
    serverUrl: () => service.url,
    live: options.live,
    random: seededRandom(options.seed + 1),
    plan: setting.plan,
    forgetsPending: options.isOutboxOff ?? false,
  });
  try {
    await load.start();
    let startedAt = performance.now();
    for (let index = 0; index < options.kills; index += 1) {
      const { kinds = allKinds } = options;
      const kind = kinds[index % kinds.length] ?? 'timed';
      await load.isFull();
      const victim = victimOf(service, { kind, index });
      const kill = (): void => void victim.process.child.kill('SIGKILL');
      if (kind === 'callback')
        await load.atCallback(Math.floor(random() * callbacksBefore[backend]), kill);
      else if (kind === 'cancel') await load.atCancel(kill);
      else if (kind === 'creating') await whileCreating(root, victim.owners, kill);
      else await delay(20 + random() * longestRestMs[backend]);
      const live = load.live;
      await victim.process.kill();
      const afterMs = performance.now() - startedAt;
      const { owners, hasOwners, isServer } = victim;
      if (hasOwners)
        await until('whoever owns its sandboxes is dead too', () => !owners.some(isRunning));
      const { open, inFlight } = openOf(root, owners);
      if (kind === 'starting')
        await killWhileStarting(service.frontFlags, root, 200 + random() * 1_300);
      const garbage = isServer ? await addGarbage(dataDir, random) : null;
      if (hasOwners && random() < 0.5) await addHalfRecord(root, owners[0]!.pid);
      startedAt = performance.now();
      await victim.start();
      const { recovered } = service.front;
      const readyMs = performance.now() - startedAt;
      const goneMs =
        open.length === 0
          ? 0
          : await untilClean(owners, { open, root, startedAt, limitMs: 3 * orphanLimitMs });
      const report: KillReport = {
        ...{ kind, afterMs, live, garbage, readyMs, goneMs },
        ...{ victim: isServer ? 'server' : 'worker', recovered: isServer ? recovered : 0 },
        ...{ sandboxes: open.length, inFlight: inFlight.length },
      };
      kills.push(report);
      options.onKill?.(report);
    }
    const evidence = await load.finish(options.endLimitMs ?? 300_000);
    const codes = await service.stop();
    const problems = [
      ...evidence.flatMap(judgeRollout),
      ...kills
        .filter(({ goneMs }) => goneMs > orphanLimitMs)
        .map(({ goneMs }) => `sandboxes of a dead server were there for ${Math.round(goneMs)} ms`),
      ...(codes.every((code) => code === 0)
        ? []
        : [`at last they exited with ${codes.join(', ')}`]),
      ...(await inspectStore(dataDir, evidence)),
      ...(await openJournals(root)),
    ];
    return {
      kills,
      rollouts: evidence.length,
      cancelled: evidence.filter(({ end }) => end === 'cancelled').length,
      interrupted: evidence.filter(({ callbacks }) =>
        callbacks.some(({ text }) => /ROLLOUT_INTERRUPTED|WORKER_LOST/.test(text)),
      ).length,
      resent: evidence.reduce(
        (sum, { callbacks }) =>
          sum + callbacks.length - new Set(callbacks.map(({ channel }) => channel)).size,
        0,
      ),
      problems,
    };
  } finally {
    await load[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  }
}

interface KilledSetting {
  readonly flags: readonly string[];
  readonly plan: (random: () => number) => PlannedWork;
}

async function settingOf(backend: KilledBackend, root: string): Promise<KilledSetting> {
  switch (backend) {
    case 'null':
      return { flags: ['--backend', 'null'], plan: plannedNull };
    case 'native': {
      const metadata = { harbor_task: path.join(bundledTasksDir, 'file-answer') };
      const flags = ['--backend', 'native', '--backend-native-agent', 'oracle'];
      return { flags, plan: () => ({ metadata, reward: 1 }) };
    }
    case 'harbor': {
      const [task, config] = [path.join(root, 'task'), path.join(root, 'slipway.toml')];
      await writeTrialTask(task, { ...quickTask, backend });
      await writeFile(config, harborTable('Quick', task));
      return { flags: ['--config', config], plan: () => ({ metadata: {}, reward: 1 }) };
    }
  }
}

function plannedNull(random: () => number): PlannedWork {
  const reward = Math.round(random() * 1000) / 1000;
  const timing = {
    duration_ms: Math.floor(random() * 600),
    grade_ms: Math.floor(random() * 300),
  };
  return { metadata: { null: { ...timing, reward } }, reward };
}

interface Victim {
  readonly process: Pick<ServeProcess, 'child' | 'kill'>;
  readonly isServer: boolean;
  /** Who makes the sandboxes of what runs; they die with it, or end what they ran for it. */
  readonly owners: readonly RunOwner[];
  readonly hasOwners: boolean;
  start(): Promise<void>;
}

/** A worker every other time, where there are any and the moment is not one of the server's own. */
function victimOf(
  service: RolloutService,
  { kind, index }: { readonly kind: KillKind; readonly index: number },
): Victim {
  const { front, workerIndices, hostDirs } = service;
  const mayBeWorker = kind === 'timed' || kind === 'creating';
  if (workerIndices.length === 0 || !mayBeWorker || index % 2 === 0) {
    const isAlone = workerIndices.length === 0;
    const pidOf = (host: number): number =>
      (isAlone ? front : service.worker(host)).child.pid ?? -1;
    return {
      ...{ process: front, isServer: true, hasOwners: isAlone },
      owners: hostDirs.map((dir, host) => ownerOf(dir, pidOf(host))),
      start: () => service.startFront(),
    };
  }
  const host = Math.floor(index / 2) % workerIndices.length;
  const worker = service.worker(host);
  return {
    ...{ process: worker, isServer: false, hasOwners: true },
    owners: [ownerOf(hostDirs[host] ?? '', worker.child.pid ?? -1)],
    start: () => service.startWorker(host),
  };
}

/** The process that makes the sandboxes of a server or worker: one of its own, or itself. */
function ownerOf(dataDir: string, pid: number): RunOwner {
  try {
    return JSON.parse(readFileSync(path.join(dataDir, 'backend.json'), 'utf8')) as RunOwner;
  } catch {
    return processOwner('server', pid);
  }
}

function openOf(stateDir: string, owners: readonly RunOwner[]): JournalView {
  const views = owners.map(({ pid }) => journalOf(stateDir, pid));
  return {
    open: views.flatMap(({ open }) => open),
    inFlight: views.flatMap(({ inFlight }) => inFlight),
  };
}

/** Acts in the very turn in which a create call is seen to be on its way. */
async function whileCreating(
  stateDir: string,
  owners: readonly RunOwner[],
  act: () => void,
): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (openOf(stateDir, owners).inFlight.length === 0) {
    if (performance.now() > deadline) throw new Error('no sandbox was made');
    await delay(1);
  }
  act();
}

/** Until the journals of those who made them say that nothing of the sandboxes is there, and it is so; Infinity = never. */
async function untilClean(
  owners: readonly RunOwner[],
  found: {
    readonly open: readonly string[];
    readonly root: string;
    readonly startedAt: number;
    readonly limitMs: number;
  },
): Promise<number> {
  const { open, root, startedAt, limitMs } = found;
  for (;;) {
    const sinceMs = performance.now() - startedAt;
    if (sinceMs > limitMs) return Number.POSITIVE_INFINITY;
    const still = new Set(openOf(root, owners).open);
    if (open.some((name) => still.has(name))) {
      await delay(20);
      continue;
    }
    if (!(await anyPresent(open, root))) return sinceMs;
    return await untilAbsent(open, root, { since: startedAt, limitMs });
  }
}

/** Journals of sandboxes that are left although every server has ended. */
async function openJournals(stateDir: string): Promise<readonly string[]> {
  const names = await readdir(path.join(stateDir, 'runs')).catch(() => []);
  return names.filter((name) => name.endsWith('.ndjson')).map((name) => `left: runs/${name}`);
}

/** A life that ends while it takes up what the one before left. */
async function killWhileStarting(
  flags: readonly string[],
  stateDir: string,
  afterMs: number,
): Promise<void> {
  const child = spawn(
    process.execPath,
    [path.join(repositoryDir, 'bin/slipway.js'), 'serve', '--port', '0', ...flags],
    { env: { ...process.env, SLIPWAY_STATE_DIR: stateDir }, cwd: stateDir, stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  await Promise.race([delay(afterMs), ended]);
  child.kill('SIGKILL');
  await ended;
}
