/**
 * Kills `slipway serve` with SIGKILL at seeded moments, each time with rollouts live, and starts it again on the same data folder. Meanwhile a controller goes on
 * submitting, cancelling and taking callbacks, of which it loses some itself. At the end every rollout must have had one end.
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
import { journalOf } from '../support/journal-names.ts';
import { seededRandom } from '../support/random.ts';
import { startServeProcess, type ServeProcess } from '../support/serve-process.ts';
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
  /** After this time from the start of the process. */
  readonly afterMs: number;
  readonly live: number;
  /** What was put behind the last commit of the store's log. */
  readonly garbage: string | null;
  /** From the next start until it was ready, and what it took up. */
  readonly readyMs: number;
  readonly recovered: number;
  /** Sandboxes that the dead server's journal held open, and those of them whose create call was on its way. */
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

/** A kill at a callback lets at most so many pass. */
const callbacksBefore: Record<KilledBackend, number> = { null: 40, native: 6, harbor: 6 };
/** Before a kill at any moment: as long as it takes until all sandboxes are there. */
const longestRestMs: Record<KilledBackend, number> = { null: 900, native: 5_000, harbor: 8_000 };

export async function killServer(options: KilledServerOptions): Promise<KilledServerReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'killed-server-'));
  const dataDir = path.join(root, 'data');
  const random = seededRandom(options.seed);
  const { backend = 'null', orphanLimitMs = 10_000 } = options;
  const setting = await settingOf(backend, root);
  const running = backend === 'null' ? Math.ceil(options.live / 2) : options.live;
  const flags = [
    ...setting.flags,
    ...['--data-dir', dataDir, '--shutdown-drain-sec', '1'],
    ...['--max-concurrent', String(running), '--max-queue-depth', String(options.live)],
  ];
  const program = path.join(import.meta.dirname, 'serve-without-outbox.ts');
  const start = (): Promise<ServeProcess> =>
    startServeProcess(flags, {
      stateDir: root,
      ...(options.isOutboxOff === true && { program: [program] }),
    });
  const kills: KillReport[] = [];
  let server = await start();
  const load = new LiveLoad({
    serverUrl: () => server.url,
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
      const owner = ownerOf(dataDir) ?? processOwner('server', server.child.pid ?? -1);
      const kill = (): void => void server.child.kill('SIGKILL');
      if (kind === 'callback')
        await load.atCallback(Math.floor(random() * callbacksBefore[backend]), kill);
      else if (kind === 'cancel') await load.atCancel(kill);
      else if (kind === 'creating') await whileCreating(root, owner.pid, kill);
      else await delay(20 + random() * longestRestMs[backend]);
      const live = load.live;
      await server.kill();
      const afterMs = performance.now() - startedAt;
      await until('whoever owns its sandboxes is dead too', () => !isRunning(owner));
      const dead = owner.pid;
      const { open, inFlight } = journalOf(root, dead);
      if (kind === 'starting') await killWhileStarting(flags, root, 200 + random() * 1_300);
      const garbage = await addGarbage(dataDir, random);
      if (random() < 0.5) await addHalfRecord(root, dead);
      startedAt = performance.now();
      server = await start();
      const { recovered } = server;
      const readyMs = performance.now() - startedAt;
      const goneMs =
        open.length === 0
          ? 0
          : await untilClean(dead, { open, root, startedAt, limitMs: 3 * orphanLimitMs });
      const report = {
        ...{ kind, afterMs, live, garbage, readyMs, recovered, goneMs },
        ...{ sandboxes: open.length, inFlight: inFlight.length },
      };
      kills.push(report);
      options.onKill?.(report);
    }
    const evidence = await load.finish(options.endLimitMs ?? 300_000);
    const code = await server.stop();
    const problems = [
      ...evidence.flatMap(judgeRollout),
      ...kills
        .filter(({ goneMs }) => goneMs > orphanLimitMs)
        .map(({ goneMs }) => `sandboxes of a dead server were there for ${Math.round(goneMs)} ms`),
      ...(code === 0 ? [] : [`the last server exited with ${String(code)}`]),
      ...(await inspectStore(dataDir, evidence)),
      ...(await openJournals(root)),
    ];
    return {
      kills,
      rollouts: evidence.length,
      cancelled: evidence.filter(({ end }) => end === 'cancelled').length,
      interrupted: evidence.filter(({ callbacks }) =>
        callbacks.some(({ text }) => text.includes('ROLLOUT_INTERRUPTED')),
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
    await server[Symbol.asyncDispose]();
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

/** The process that makes the sandboxes of a server; null = the server itself. */
function ownerOf(dataDir: string): RunOwner | null {
  try {
    return JSON.parse(readFileSync(path.join(dataDir, 'backend.json'), 'utf8')) as RunOwner;
  } catch {
    return null;
  }
}

/** Acts in the very turn in which a create call is seen to be on its way. */
async function whileCreating(stateDir: string, pid: number, act: () => void): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (journalOf(stateDir, pid).inFlight.length === 0) {
    if (performance.now() > deadline) throw new Error('no sandbox was made');
    await delay(1);
  }
  act();
}

/** Until the journal of the dead server says that nothing of the sandboxes is there, and it is so; Infinity = never. */
async function untilClean(
  pid: number,
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
    if (journalOf(root, pid).open.length > 0) {
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
