import { readlinkSync } from 'node:fs';
import { open, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import { SharedLook } from '../../../core/shared-look.ts';
import { scanProcesses } from '../../shared/process-scan.ts';

/** A process of a container as the host sees it. */
export interface HostProcess {
  readonly pid: number;
  readonly parent: number;
  readonly startTicks: number;
  readonly isZombie: boolean;
}

const cgroupRoot = '/sys/fs/cgroup';

/**
 * The folders in which a container's processes are listed, or null when this process does not see them (a remote daemon, a virtual
 * machine, another pid namespace). They are read from the container's first process and must carry the container's id.
 */
export async function cgroupFolder(initPid: number, containerId: string): Promise<string | null> {
  const lines = (await readFile(`/proc/${initPid}/cgroup`, 'utf8').catch(() => '')).split('\n');
  const memberships = lines.map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  for (const wanted of ['pids', 'freezer', 'memory', 'name=systemd', '']) {
    const found = memberships.find((match) => match?.[1]?.split(',').includes(wanted) === true);
    const below = found?.[2];
    if (below?.includes(containerId) !== true) continue;
    const controller = wanted.replace(/^name=/, '');
    for (const folder of controller === '' ? ['', 'unified'] : [controller]) {
      const candidate = path.join(cgroupRoot, folder, below);
      const procs = await readFile(path.join(candidate, 'cgroup.procs'), 'utf8').catch(() => '');
      if (procs.split('\n').includes(String(initPid))) return candidate;
    }
  }
  return null;
}

/** Every process in a cgroup and those below it. A cgroup that is gone holds none. */
export async function processesIn(folder: string): Promise<readonly HostProcess[]> {
  const pids = new Set<number>();
  await collectPids(folder, pids);
  const found = await Promise.all([...pids].map(readProcess));
  return found.filter((entry) => entry !== null);
}

async function collectPids(folder: string, into: Set<number>): Promise<void> {
  const procs = await readFile(path.join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
  for (const line of procs.split('\n')) if (line !== '' && line !== '0') into.add(Number(line));
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries)
    if (entry.isDirectory()) await collectPids(path.join(folder, entry.name), into);
}

/** The pid namespaces of the host and who is in them: one look for all who ask at a time, begun after they asked. */
export class NamespaceScan {
  readonly #members = new SharedLook(async () => {
    const found = await scanProcesses(namespaceOf);
    return Map.groupBy(found.keys(), (pid) => found.get(pid));
  });

  /**
   * Pids of the host that live in the pid namespace of a container; null when namespaces cannot be read, or when `initPid` is the container's no
   * more. The namespace is held open while it is looked at: the kernel gives the number of one that has gone to the next that is made, and a
   * pid to the next process, so that a look by number alone finds strangers, or the whole host.
   */
  async pidsOf(initPid: number, containerId: string): Promise<readonly number[] | null> {
    const held = await open(`/proc/${initPid}/ns/pid`, 'r').catch(() => null);
    if (held === null) return null;
    try {
      const wanted = await readlink(`/proc/self/fd/${held.fd}`);
      const cgroups = await readFile(`/proc/${initPid}/cgroup`, 'utf8').catch(() => '');
      if (!cgroups.includes(containerId)) return null;
      if (wanted === (await readlink('/proc/self/ns/pid'))) return null;
      return (await this.#members.fresh()).get(wanted) ?? [];
    } finally {
      await held.close();
    }
  }
}

/** null when it has ended, or belongs to somebody else. */
function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

export async function readProcess(pid: number): Promise<HostProcess | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  // The name in parentheses may hold anything, also parentheses: fields are counted from behind it.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields === undefined) return null;
  return {
    pid,
    parent: Number(fields[1]),
    startTicks: Number(fields[19]),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
  };
}

export async function commandLine(pid: number): Promise<string> {
  const raw = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return raw.replace(/\0$/, '').replaceAll('\0', ' ');
}
