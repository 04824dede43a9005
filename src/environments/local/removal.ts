/**
 * Removes a sandbox by its name alone, whatever state it is in and whoever made it: its processes by cgroup, pid namespace and tracer, programs of
 * the host that serve it, its cgroup, the runtime's record, its mounts, its folder. Everything is looked at again afterwards; the
 * receipt names only what was found absent.
 */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { LoopTurns } from '../../core/loop-turns.ts';
import { removeFolder } from '../../core/remove-folder.ts';
import type { DestroyReceipt } from '../environment.ts';
import type { SandboxCgroup } from './cgroups/cgroup-tree.ts';
import { runHostCommand } from './host-command.ts';
import type { HostScan } from './processes/host-scan.ts';
import {
  hasEnded,
  pidNamespaceOf,
  readProcess,
  signalRow,
  type ProcessRow,
} from './processes/process-table.ts';
import { TracedProcesses } from './processes/traced-processes.ts';
import type { SandboxFolder } from './sandbox-folder.ts';
import type { SharedUnmount } from './shared-unmount.ts';

export const defaultDestroyMs = 30_000;

const pollMs = 2;

export interface RemovalOptions {
  readonly cgroup: SandboxCgroup | null;
  readonly scan: HostScan;
  readonly turns: LoopTurns;
  readonly mounts: SharedUnmount;
  readonly deadlineMs: number;
}

interface Removal extends RemovalOptions {
  readonly folder: SandboxFolder;
  /** First process of the sandbox's pid namespace; null when it is not known, or has gone. */
  readonly init: ProcessRow | null;
  readonly traced: TracedProcesses | null;
  readonly signal: AbortSignal;
}

/** ENVIRONMENT_DESTROY_FAILED names what is left at the deadline. */
export async function removeSandbox(
  folder: SandboxFolder,
  options: RemovalOptions,
): Promise<DestroyReceipt> {
  const start = performance.now();
  using limit = new LinkedAbort([], {
    ms: options.deadlineMs,
    reason: () => new Error('deadline'),
  });
  const { signal } = limit;
  const removal: Removal = {
    ...options,
    folder,
    init: recordedInit(folder),
    traced: existsSync(folder.loader) ? new TracedProcesses(folder, options.scan) : null,
    signal,
  };
  let lastError: unknown = null;
  try {
    for (;;) {
      try {
        await removeOnce(removal);
      } catch (error) {
        lastError = error;
      }
      const left = await leftOf(removal);
      if (left.length === 0) break;
      if (signal.aborted) throw notRemoved(folder.name, left, lastError);
      await delay(pollMs * 5);
    }
  } finally {
    limit.abort('done');
  }
  return { name: folder.name, confirmedGone: kinds, durationMs: performance.now() - start };
}

async function removeOnce(removal: Removal): Promise<void> {
  const { folder, cgroup, turns, signal } = removal;
  await killAll(removal);
  await turns.next('end');
  cgroup?.remove();
  await unmount(removal);
  await removeTree(folder.runtimeState, removal);
  await turns.next('end');
  // Only when nothing is mounted below it any more: a removal must not reach into an image.
  if (mountsBelow(folder.dir).length > 0) return;
  await openToOwner(folder, signal);
  await removeTree(folder.dir, removal);
}

const kinds = ['process', 'cgroup', 'container', 'network', 'proxy', 'mount', 'directory'] as const;

/** What of the sandbox is still there. */
async function leftOf(removal: Removal): Promise<readonly string[]> {
  const { folder, init, cgroup, turns } = removal;
  const living = await livingOf(removal);
  await turns.next('end');
  const isThere: Record<(typeof kinds)[number], boolean> = {
    process: living.length > 0,
    cgroup: cgroup?.exists === true,
    container: existsSync(folder.runtimeState),
    network: init !== null && !hasEnded(init.pid, init.startTime),
    proxy: existsSync(folder.sockets),
    mount: mountsBelow(folder.dir).length > 0,
    directory: existsSync(folder.dir),
  };
  return kinds.filter((kind) => isThere[kind]);
}

/**
 * SIGKILLs until nothing is left. A group is frozen first where that is possible, so that it cannot outrun us. Programs of the host come
 * last: the runtime collects its dead commands, which are otherwise left to the init of the host, and that takes its time.
 */
async function killAll(removal: Removal): Promise<void> {
  const { cgroup, traced, signal } = removal;
  cgroup?.hasten();
  for (;;) {
    const inside = await membersOf(removal);
    const serving = inside.length === 0 ? await servingOf(removal) : [];
    if (inside.length === 0 && serving.length === 0) return;
    signal.throwIfAborted();
    for (const row of serving) signalRow(row, 'SIGKILL');
    if (inside.length > 0 && cgroup?.killAll() !== true) {
      cgroup?.setFrozen(true);
      await traced?.setFrozen(true);
      for (const row of await membersOf(removal)) signalRow(row, 'SIGKILL');
      await traced?.setFrozen(false);
      cgroup?.setFrozen(false);
    }
    await delay(pollMs);
  }
}

async function livingOf(removal: Removal): Promise<readonly ProcessRow[]> {
  const members = await membersOf(removal);
  return members.length > 0 ? members : await servingOf(removal);
}

/**
 * Processes of the sandbox. Of a pid namespace its first one stands for all: the kernel kills the others with it, and lets it end only when they
 * are gone.
 */
async function membersOf({ cgroup, init, traced }: Removal): Promise<readonly ProcessRow[]> {
  const rows = (await traced?.all()) ?? [];
  const grouped = (cgroup?.pids() ?? []).map(readProcess).filter((row) => row !== null);
  const first = init === null || hasEnded(init.pid, init.startTime) ? [] : [init];
  return [...rows, ...grouped.filter((row) => !row.isEnded), ...first];
}

/** Programs of the host that name the sandbox's folder, or something in it, on their command line. */
async function servingOf({ folder, scan }: Removal): Promise<readonly ProcessRow[]> {
  return (await scan.table()).serving(folder.dir);
}

/** The recorded init, if that process still lives and is in a pid namespace of its own. */
function recordedInit(folder: SandboxFolder): ProcessRow | null {
  try {
    const pid = Number(readFileSync(folder.initPid, 'utf8'));
    if (!Number.isInteger(pid) || pid < 2) return null;
    const row = readProcess(pid);
    const namespace = pidNamespaceOf(pid);
    const isOwn = namespace !== null && namespace !== pidNamespaceOf(process.pid);
    return row !== null && isOwn && servesFolder(pid, folder) ? row : null;
  } catch {
    return null;
  }
}

/** The overlay and the sandbox's own root leave folders that nobody may enter, not even their owner unless that is root. */
async function openToOwner(folder: SandboxFolder, signal: AbortSignal): Promise<void> {
  if (process.getuid?.() === 0 || !existsSync(folder.dir)) return;
  await runHostCommand({ file: 'chmod', args: ['-R', 'u+rwX', folder.dir] }, signal);
}

/**
 * The program goes down a tree folder by folder: what nests deeper than a path can name is nothing to it, and too much for Node.
 */
async function removeTree(dir: string, { turns, signal }: Removal): Promise<void> {
  try {
    await turns.next('end');
    await removeFolder(dir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENAMETOOLONG') throw error;
    await runHostCommand({ file: 'rm', args: ['-rf', '--', dir] }, signal);
  }
}

/** A reused pid is another process: the recorded init has the sandbox's own root as its root. */
function servesFolder(pid: number, folder: SandboxFolder): boolean {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(folder.disk);
  } catch {
    return false;
  }
}

/** Mount points at or below a folder, the innermost first. */
export function mountsBelow(dir: string): readonly string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => unescaped(line.split(' ')[4] ?? ''))
    .filter((point) => point === dir || point.startsWith(`${dir}/`))
    .reverse();
}

/** mountinfo writes space, tab, newline and backslash in octal. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

async function unmount({ folder, mounts, turns, signal }: Removal): Promise<void> {
  const points = mountsBelow(folder.dir);
  if (points.length === 0) return;
  await mounts.unmount(points, signal);
  const busy = mountsBelow(folder.dir);
  if (busy.length === 0) return;
  // Somebody on the host stands in it: detached now, gone when they leave.
  await runHostCommand(
    { file: 'umount', args: ['--lazy', '--', ...busy], turns, lane: 'end' },
    signal,
  );
}

function notRemoved(name: string, left: readonly string[], cause: unknown): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_DESTROY_FAILED',
    `of the sandbox ${name} there is still: ${left.join(', ')}`,
    {
      phase: 'cleanup',
      cause,
      remedy: 'Run `slipway cleanup`; it tries again and says what holds it.',
    },
  );
}
