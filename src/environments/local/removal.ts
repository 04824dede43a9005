/**
 * Removes a sandbox by its name alone, whatever state it is in and whoever made it: its processes by cgroup, pid namespace and tracer, programs of
 * the host that serve it, its cgroup, the runtime's record, its mounts, its folder. Everything is looked at again afterwards; the
 * receipt names only what was found absent.
 */
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { DestroyReceipt } from '../environment.ts';
import type { SandboxCgroup } from './cgroups/cgroup-tree.ts';
import { runHostCommand } from './host-command.ts';
import { HeldNamespace } from './processes/held-namespace.ts';
import {
  allPids,
  killNow,
  pidNamespaceMembers,
  pidNamespaceOf,
} from './processes/process-table.ts';
import { TracedProcesses } from './processes/traced-processes.ts';
import type { SandboxFolder } from './sandbox-folder.ts';

export const defaultDestroyMs = 30_000;

const pollMs = 2;

/** Programs that we start on the host for a sandbox, as `/proc/PID/comm` shows them (15 characters). */
const ownPrograms = new Set([
  ...['runc', 'crun', 'sh', 'setpriv', 'nsenter', 'socat', 'slirp4netns', 'mount', 'umount'],
  ...['mkfs.ext4', 'unshare', 'sleep', 'runc:[1:CHILD]', 'runc:[2:INIT]', 'cp', 'perl', 'proot'],
]);

/** ENVIRONMENT_DESTROY_FAILED names what is left at the deadline. */
export async function removeSandbox(
  folder: SandboxFolder,
  cgroup: SandboxCgroup | null,
  deadlineMs: number,
): Promise<DestroyReceipt> {
  const start = performance.now();
  using limit = new LinkedAbort([], { ms: deadlineMs, reason: () => new Error('deadline') });
  const { signal } = limit;
  using held = recordedNamespace(folder);
  const namespace = held?.id ?? null;
  const traced = existsSync(folder.loader) ? new TracedProcesses(folder) : null;
  const rest: Record<string, () => boolean> = {
    process: () =>
      servingPids(folder).length === 0 &&
      (namespace === null || pidNamespaceMembers(namespace).length === 0) &&
      (cgroup?.pids().length ?? 0) === 0 &&
      (traced?.all().length ?? 0) === 0,
    cgroup: () => cgroup?.exists !== true,
    container: () => !existsSync(folder.runtimeState),
    network: () => namespace === null || pidNamespaceMembers(namespace).length === 0,
    proxy: () => !existsSync(folder.sockets),
    mount: () => mountsBelow(folder.dir).length === 0,
    directory: () => !existsSync(folder.dir),
  };
  const left = (): string[] => Object.keys(rest).filter((kind) => rest[kind]?.() !== true);
  let lastError: unknown = null;
  try {
    for (;;) {
      try {
        await killAll(folder, { cgroup, namespace, traced, signal });
        cgroup?.remove();
        await unmount(folder, signal);
        await rm(folder.runtimeState, { recursive: true, force: true });
        // Only when nothing is mounted below it any more: a removal must not reach into an image.
        if (mountsBelow(folder.dir).length === 0) {
          await openToOwner(folder, signal);
          await removeTree(folder.dir, signal);
        }
      } catch (error) {
        lastError = error;
      }
      if (left().length === 0) break;
      if (signal.aborted) throw notRemoved(folder.name, left(), lastError);
      await delay(pollMs * 5);
    }
  } finally {
    limit.abort('done');
  }
  return {
    name: folder.name,
    confirmedGone: Object.keys(rest),
    durationMs: performance.now() - start,
  };
}

/**
 * SIGKILLs until nothing is left. A group is frozen first where that is possible, so that it cannot outrun us. Programs of the host come
 * last: the runtime collects its dead commands, which are otherwise left to the init of the host, and that takes its time.
 */
async function killAll(
  folder: SandboxFolder,
  options: {
    readonly cgroup: SandboxCgroup | null;
    readonly namespace: string | null;
    readonly traced: TracedProcesses | null;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { cgroup, namespace, traced, signal } = options;
  const members = (): readonly number[] => [
    ...(cgroup?.pids() ?? []),
    ...(namespace === null ? [] : pidNamespaceMembers(namespace).map((row) => row.pid)),
    ...(traced?.all() ?? []).map((row) => row.pid),
  ];
  for (;;) {
    const inside = members();
    const serving = inside.length === 0 ? servingPids(folder) : [];
    if (inside.length === 0 && serving.length === 0) return;
    signal.throwIfAborted();
    for (const pid of serving) killNow(pid);
    if (inside.length > 0 && cgroup?.killAll() !== true) {
      cgroup?.setFrozen(true);
      traced?.setFrozen(true);
      for (const pid of members()) killNow(pid);
      traced?.setFrozen(false);
      cgroup?.setFrozen(false);
    }
    await delay(pollMs);
  }
}

/** The pid namespace of the recorded init, if that process still lives and is in one of its own. */
function recordedNamespace(folder: SandboxFolder): HeldNamespace | null {
  try {
    const pid = Number(readFileSync(folder.initPid, 'utf8'));
    if (!Number.isInteger(pid) || pid < 2) return null;
    const held = HeldNamespace.of(pid);
    if (held !== null && held.id !== pidNamespaceOf(process.pid) && servesFolder(pid, folder))
      return held;
    held?.[Symbol.dispose]();
    return null;
  } catch {
    return null;
  }
}

/** The overlay and the sandbox's own root leave folders that nobody may enter, not even their owner unless that is root. */
async function openToOwner(folder: SandboxFolder, signal: AbortSignal): Promise<void> {
  if (process.getuid?.() === 0 || !existsSync(folder.dir)) return;
  await runHostCommand({ file: 'chmod', args: ['-R', 'u+rwX', folder.dir] }, signal);
}

/** The program goes down a tree folder by folder: what nests deeper than a path can name is nothing to it, and too much for Node. */
async function removeTree(dir: string, signal: AbortSignal): Promise<void> {
  try {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
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

/** Programs of the host that name the sandbox's folder, or something in it, on their command line. */
function servingPids(folder: SandboxFolder): readonly number[] {
  return allPids().filter((pid) => {
    if (pid === process.pid) return false;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!line.includes(folder.dir)) return false;
      const names = new RegExp(`${escaped(folder.dir)}(?:[/,\\0]|$)`);
      return names.test(line) && ownPrograms.has(readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
    } catch {
      return false; // it has ended
    }
  });
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
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

async function unmount(folder: SandboxFolder, signal: AbortSignal): Promise<void> {
  const points = mountsBelow(folder.dir);
  if (points.length === 0) return;
  const plain = await runHostCommand({ file: 'umount', args: ['--', ...points] }, signal);
  if (plain.exitCode === 0) return;
  // Somebody on the host stands in it: detached now, gone when they leave.
  const busy = mountsBelow(folder.dir);
  await runHostCommand({ file: 'umount', args: ['--lazy', '--', ...busy] }, signal);
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
