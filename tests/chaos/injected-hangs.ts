/**
 * Every kind of hang, brought about for real: at a server with the native backend those of engine, sandbox, agent and verifier, which then keep all
 * places taken; at one with the null backend, in a folder on a small disk, a pause, a receiver that never answers, and a full disk.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../src/environments/local/host-command.ts';
import type { HangKind } from '../../src/wire/rollout/diagnosis.ts';
import { until } from '../support/until.ts';
import { startEngineProcess } from '../support/engine-process.ts';
import { ownLeftovers } from '../support/own-leftovers.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { EngineFront } from './engine-front.ts';
import { HangBench, startOfProcessWith, type InjectedHang, type NamedHang } from './hang-bench.ts';

const run = promisify(execFile);

export interface InjectedHangsOptions {
  /** Whether `slipway doctor` is asked too. */
  readonly asksProgram: (kind: HangKind) => boolean;
  readonly onNamed?: (named: NamedHang) => void;
}

export interface InjectedHangsReport {
  readonly named: readonly NamedHang[];
  readonly problems: readonly string[];
}

const nativeKinds = [
  'engine-silent',
  'engine-slow',
  'upstream-refusing',
  'sandbox-create-stuck',
  'build-stuck',
  'verifier-hung',
  'agent-sleeping',
  'agent-waiting-for-input',
] as const satisfies readonly HangKind[];

const owners: Readonly<Record<(typeof nativeKinds)[number], string>> = {
  'engine-silent': 'engine',
  'engine-slow': 'engine',
  'upstream-refusing': 'engine',
  'sandbox-create-stuck': 'environment local',
  'build-stuck': 'environment local',
  'verifier-hung': 'verifier',
  'agent-sleeping': 'agent terminus-2',
  'agent-waiting-for-input': 'agent terminus-2',
};

export async function injectHangs(options: InjectedHangsOptions): Promise<InjectedHangsReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'hangs-'));
  const stateDir = path.join(root, 'state');
  await mkdir(stateDir);
  try {
    const [native, plain] = await Promise.all([
      hangTrials(root, { ...options, stateDir }),
      hangServer(root, options),
    ]);
    const left = await ownLeftovers(root, { stateDir, withinMs: 15_000 });
    const named = [...native, ...plain];
    const problems = named.flatMap((one) => one.problems);
    return { named, problems: [...problems, ...left.map((what) => `left: ${what}`)] };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

type NativeOptions = InjectedHangsOptions & { readonly stateDir: string };

async function hangTrials(root: string, options: NativeOptions): Promise<readonly NamedHang[]> {
  await using stack = new AsyncDisposableStack();
  const engineFlags = [
    ...['--policy', path.join(repositoryDir, 'tests/support/policies/hang-policy.ts')],
    ...['--faults', JSON.stringify(faults)],
  ];
  const engine = stack.use(await startEngineProcess(engineFlags));
  const slowEngine = stack.use(
    await startEngineProcess([...engineFlags, '--latency', 'constant:600000']),
  );
  const front = stack.use(new EngineFront(engine.url));
  const slowFront = stack.use(new EngineFront(slowEngine.url));
  await Promise.all([front.start(), slowFront.start()]);
  const silent = stack.use(await MuteReceiver.open());
  const config = path.join(root, 'slipway.toml');
  const agent =
    '{ record_terminal_session = false, retry_min_wait_sec = 20, retry_max_wait_sec = 30 }';
  const native = `environment = "local"\nagent_options = ${agent}\n`;
  await writeFile(config, `[backend]\nkind = "native"\n[backend.native]\n${native}`);
  const programs = await stuckPrograms(root);
  const places = String(nativeKinds.length);
  const bench = stack.use(
    await HangBench.open(
      [
        ...['--config', config, '--data-dir', path.join(root, 'native')],
        ...['--max-concurrent', places, '--max-queue-depth', '4'],
      ],
      {
        stateDir: options.stateDir,
        variables: { PATH: `${programs}:${process.env['PATH'] ?? ''}` },
      },
    ),
  );
  const hangs: InjectedHang[] = [];
  for (const [index, kind] of nativeKinds.entries()) {
    const marker = `${process.pid % 10_000}${String(index).padStart(3, '0')}`;
    const way = kind === 'engine-slow' ? slowFront : front;
    const isSilent = kind === 'engine-silent';
    const taskDir = path.join(root, 'tasks', kind);
    await writeTask(taskDir, kind, marker);
    await bench.submit(kind, {
      chat_completions_url: isSilent ? `${silent.url}/v1` : way.apiBase(kind),
      metadata: { harbor_task: taskDir },
    });
    const words = kind === 'sandbox-create-stuck' ? stuckMark(root) : `1${marker}`;
    const callsModel = kind === 'engine-slow' || kind === 'upstream-refusing';
    hangs.push({
      ...{ kind, id: kind, owner: owners[kind] },
      begunAt: () =>
        isSilent ? silent.askedAt : callsModel ? way.firstAt(kind) : startOfProcessWith(words),
    });
  }
  await bench.submit('admission-starved', {});
  const submittedAt = Date.now();
  hangs.push({
    ...{ kind: 'admission-starved', id: 'admission-starved', owner: 'scheduler' },
    begunAt: () => submittedAt,
  });
  const named = await nameAll(bench, hangs, options);
  const listed = new Set((await bench.findings(null)).map(({ rollout_id: id }) => id));
  const missing = hangs.filter(({ id }) => !listed.has(id)).map(({ kind }) => kind);
  if (missing.length === 0) return named;
  const problem = `not in the list of all findings: ${missing.join(', ')}`;
  return named.map((one, index) =>
    index === 0 ? { ...one, problems: [...one.problems, problem] } : one,
  );
}

const faults = [
  { match: { promptContains: 'hang upstream-refusing' }, fault: 'overload', status: 503 },
];

async function writeTask(dir: string, kind: HangKind, marker: string): Promise<void> {
  await mkdir(path.join(dir, 'tests'), { recursive: true });
  await mkdir(path.join(dir, 'environment'));
  const isBuilt = kind === 'build-stuck';
  if (isBuilt)
    await writeFile(
      path.join(dir, 'environment/Dockerfile'),
      `FROM debian:bookworm-slim\nRUN sleep 1${marker}\n`,
    );
  const image = isBuilt ? '' : 'docker_image = "debian:bookworm-slim"\n';
  await writeFile(path.join(dir, 'task.toml'), `[environment]\n${image}`);
  await writeFile(path.join(dir, 'instruction.md'), `Do: hang ${kind}, marker ${marker}.\n`);
  const wait = kind === 'verifier-hung' ? `sleep 1${marker}\n` : '';
  await writeFile(path.join(dir, 'tests/test.sh'), `${wait}echo 1 > /logs/verifier/reward.txt\n`);
}

function stuckMark(root: string): string {
  return `${root}/stuck-runtime`;
}

/** A `runc` that never comes back from making the sandbox of one rollout. */
async function stuckPrograms(root: string): Promise<string> {
  const dir = path.join(root, 'programs');
  await mkdir(dir);
  const real = findProgram('runc') ?? 'runc';
  const file = path.join(dir, 'runc');
  const hang = `exec -a ${stuckMark(root)} sleep 100000`;
  await writeFile(
    file,
    `#!/bin/bash\ncase "$*" in *run*--detach*sandbox-create-stuck*) ${hang};; esac\nexec ${real} "$@"\n`,
  );
  await chmod(file, 0o755);
  return dir;
}

async function hangServer(
  root: string,
  options: InjectedHangsOptions,
): Promise<readonly NamedHang[]> {
  await using stack = new AsyncDisposableStack();
  const dataDir = path.join(root, 'small');
  const stateDir = path.join(root, 'small-state');
  await Promise.all([mkdir(dataDir), mkdir(stateDir)]);
  await run('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', dataDir]);
  stack.defer(async () => {
    await run('umount', ['--lazy', dataDir]);
  });
  const receiver = stack.use(await MuteReceiver.open());
  const config = path.join(root, 'small.toml');
  const admission = '[admission]\npause_after_failures = 2\npause_retry_sec = 600\n';
  await writeFile(config, `${admission}[limits]\ndisk_floor_bytes = 1048576\n`);
  const bench = stack.use(
    await HangBench.open(
      [
        ...['--config', config, '--backend', 'null', '--data-dir', dataDir],
        ...['--max-concurrent', '4', '--max-queue-depth', '4'],
      ],
      { stateDir },
    ),
  );
  const named: NamedHang[] = [];
  const name = async (...hangs: readonly InjectedHang[]): Promise<void> => {
    named.push(...(await nameAll(bench, hangs, options)));
  };
  await bench.submit('callback-blocked', { completion_callback_url: receiver.url });
  await name({
    ...{ kind: 'callback-blocked', id: 'callback-blocked', owner: 'controller' },
    begunAt: () => receiver.askedAt,
  });

  const full = { kind: 'disk-full', owner: 'operator' } as const;
  await bench.submit('disk-full', { metadata: { null: { duration_ms: 4_000 } } });
  await until('it runs', async () => (await bench.status('disk-full')) === 'running');
  await fillDisk(dataDir);
  const filledAt = Date.now();
  await name(
    { ...full, id: null, begunAt: () => filledAt },
    // It hangs when it has ended and cannot say so.
    { ...full, id: 'disk-full', begunAt: () => filledAt + 4_000 },
  );
  await rm(path.join(dataDir, 'filler'));
  await until('it ends', async () => (await bench.status('disk-full')) === 'success');

  const paused = { kind: 'paused', owner: 'operator' } as const;
  const fails = { metadata: { null: { fail: 'ENVIRONMENT_START_FAILED', duration_ms: 1_000 } } };
  await Promise.all(['f-1', 'f-2'].map((id) => bench.submit(id, fails)));
  for (const id of ['f-3', 'f-4'])
    await bench.submit(id, { metadata: { null: { duration_ms: 86_400_000 } } });
  await bench.submit('paused', {});
  for (const id of ['f-1', 'f-2'])
    await until('it fails', async () => (await bench.status(id)) === 'failure');
  const failedAt = Date.now();
  await name(...['paused', null].map((id) => ({ ...paused, id, begunAt: () => failedAt })));
  return named;
}

async function fillDisk(dir: string): Promise<void> {
  const file = await open(path.join(dir, 'filler'), 'w');
  try {
    for (let size = 64 * 1024; size >= 512;)
      await file.write(Buffer.alloc(size)).catch(() => {
        size /= 2;
      });
  } finally {
    await file.close();
  }
}

/** All by the API first: a program that starts takes its time on a busy machine, and the hangs last. */
async function nameAll(
  bench: HangBench,
  hangs: readonly InjectedHang[],
  { asksProgram, onNamed }: InjectedHangsOptions,
): Promise<readonly NamedHang[]> {
  const named = await Promise.all(hangs.map((hang) => bench.name(hang)));
  for (const one of named) onNamed?.(one);
  return await Promise.all(
    named.map(async (one, index) => {
      const hang = hangs[index];
      if (hang === undefined || !asksProgram(hang.kind)) return one;
      return { ...one, problems: [...one.problems, ...(await bench.program(hang))] };
    }),
  );
}

/** Takes connections and requests, and never says a word. */
class MuteReceiver implements AsyncDisposable {
  /** When the first request came, in milliseconds of the epoch; null = none has. */
  askedAt: number | null = null;
  readonly #server: Server;
  readonly #open = new Set<{ destroy(): unknown }>();

  private constructor() {
    this.#server = createServer((socket) => {
      this.#open.add(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => (this.askedAt ??= Date.now()));
    });
  }

  static async open(): Promise<MuteReceiver> {
    const receiver = new MuteReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
