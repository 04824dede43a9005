/** What sandboxes can leave behind on a machine, counted before and after. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const repositoryDir = path.resolve(import.meta.dirname, '../..');

export interface MachineState {
  readonly containers: ReadonlySet<string>;
  readonly networks: ReadonlySet<string>;
  readonly mounts: ReadonlySet<string>;
  readonly cgroups: ReadonlySet<string>;
  readonly processes: ReadonlySet<string>;
  readonly folders: ReadonlySet<string>;
}

/** Programs that run sandboxes; a process of ours is one of them, or sits in a cgroup of ours, or names us in its arguments. */
const sandboxPrograms = new Set([
  'runc',
  'crun',
  'slirp4netns',
  'socat',
  'bwrap',
  'containerd-shim',
]);

export async function machineState(options: {
  /** State folders whose `sandboxes/` are listed, beside the system's temporary folder. */
  readonly stateDirs: readonly string[];
}): Promise<MachineState> {
  const [containers, networks, mounts, cgroups, processes, folders] = await Promise.all([
    docker(['ps', '--all', '--format', '{{.Names}}']),
    docker(['network', 'ls', '--format', '{{.Name}}']),
    mountPoints(),
    cgroupFolders(),
    sandboxProcesses(),
    ourFolders(options.stateDirs),
  ]);
  return { containers, networks, mounts, cgroups, processes, folders };
}

/** What is in `after` and was not in `before`, one line each. */
export function leftovers(before: MachineState, after: MachineState): readonly string[] {
  const kinds = Object.keys(before) as (keyof MachineState)[];
  return kinds.flatMap((kind) =>
    [...after[kind]].filter((item) => !before[kind].has(item)).map((item) => `${kind}: ${item}`),
  );
}

/** Leftovers once the machine is at rest: a shim or a mount of the engine may outlive its container by a moment, not by `withinMs`. */
export async function lastingLeftovers(
  before: MachineState,
  options: { readonly stateDirs: readonly string[]; readonly withinMs: number },
): Promise<{ readonly left: readonly string[]; readonly after: MachineState }> {
  const until = performance.now() + options.withinMs;
  for (;;) {
    const after = await machineState(options);
    const left = leftovers(before, after);
    if (left.length === 0 || performance.now() > until) return { left, after };
    await delay(100);
  }
}

export function counts(state: MachineState): string {
  return Object.entries(state)
    .map(([kind, items]) => `${kind} ${(items as ReadonlySet<string>).size}`)
    .join(', ');
}

async function docker(args: readonly string[]): Promise<Set<string>> {
  try {
    const { stdout } = await run('docker', [...args], { timeout: 20_000 });
    return new Set(stdout.split('\n').filter((line) => line !== ''));
  } catch {
    return new Set(); // no engine: nothing of it can be left
  }
}

async function mountPoints(): Promise<Set<string>> {
  const table = await readFile('/proc/self/mountinfo', 'utf8');
  return new Set(
    table
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => `${line.split(' ')[4] ?? ''} (${line.split(' - ')[1]?.split(' ')[0] ?? ''})`),
  );
}

async function cgroupFolders(): Promise<Set<string>> {
  const found = new Set<string>();
  const visit = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (!entry.isDirectory()) continue;
      const child = path.join(folder, entry.name);
      found.add(child);
      if (depth < 6) await visit(child, depth + 1);
    }
  };
  await visit('/sys/fs/cgroup', 0);
  return found;
}

async function sandboxProcesses(): Promise<Set<string>> {
  const found = new Set<string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    if (Number(pid) === process.pid) continue;
    try {
      const [stat, command, cgroup] = await Promise.all(
        ['stat', 'cmdline', 'cgroup'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8')),
      );
      const [, name = '', state = ''] = /\((.*)\) (\S)/s.exec(stat ?? '') ?? [];
      if (state === 'Z') continue; // dead; whoever inherited it has not read its exit code yet
      const words = (command ?? '').replaceAll('\0', ' ').trim();
      // A checkout may lie in a folder that is named like us, and other checks run in it.
      const ownWords = words.replaceAll(repositoryDir, '');
      const isOurs =
        [...sandboxPrograms].some((program) => name.startsWith(program)) ||
        (cgroup ?? '').includes('slipway') ||
        /bin\/slipway|slipway-/.test(ownWords);
      if (isOurs) found.add(`${pid} ${name} ${words.slice(0, 120)}`);
    } catch {
      // the process ended while we looked
    }
  }
  return found;
}

async function ourFolders(stateDirs: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  for (const name of await readdir(os.tmpdir())) if (name.startsWith('slipway')) found.add(name);
  for (const dir of stateDirs)
    for (const part of ['sandboxes', 'runtime'])
      for (const name of await readdir(path.join(dir, part)).catch(() => []))
        found.add(path.join(part, name));
  return found;
}
