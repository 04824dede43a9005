/**
 * Looks at all processes of the host, shared by all sandboxes of a provider: when many of them start or end at once, one look serves them all.
 * Every answer comes from a look that began after it was asked for, so that it proves what it shows.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { SharedLook } from '../../../core/shared-look.ts';
import { scanProcesses } from '../../shared/process-scan.ts';
import { descendants, pidNamespaceOf, readProcess, type ProcessRow } from './process-table.ts';

/** Programs that we start on the host for a sandbox, as `/proc/PID/comm` shows them (15 characters). */
const ownPrograms = new Set([
  ...['runc', 'crun', 'sh', 'setpriv', 'nsenter', 'socat', 'slirp4netns', 'mount', 'umount'],
  ...['mkfs.ext4', 'unshare', 'sleep', 'runc:[1:CHILD]', 'runc:[2:INIT]', 'cp', 'perl', 'proot'],
]);

interface ScannedProcess extends ProcessRow {
  /** Of its pid namespace. */
  readonly namespace: string | null;
  /** Words, each with a NUL behind it, of a program that may be ours; else null. */
  readonly ownCommandLine: string | null;
}

export interface TracedProcess extends ProcessRow {
  /** 0 when nobody traces it. */
  readonly tracer: number;
  /** The file that it runs. */
  readonly program: string | null;
  /** Words of a proot, each with a NUL behind it; else null. */
  readonly tracerCommandLine: string | null;
}

export class HostScan {
  readonly #table = new SharedLook(
    async () => new HostTable([...(await scanProcesses(readScanned)).values()]),
  );
  readonly #traced = new SharedLook(async () => [...(await scanProcesses(readTraced)).values()]);

  table(): Promise<HostTable> {
    return this.#table.fresh();
  }

  /** The living ones. */
  traced(): Promise<readonly TracedProcess[]> {
    return this.#traced.fresh();
  }
}

/** All processes of the host as one look found them. */
export class HostTable {
  readonly rows: readonly ProcessRow[];
  readonly byParent: ReadonlyMap<number, readonly ProcessRow[]>;
  readonly #byNamespace: ReadonlyMap<string | null, readonly ScannedProcess[]>;
  readonly #own: readonly ScannedProcess[];

  constructor(rows: readonly ScannedProcess[]) {
    this.rows = rows;
    this.byParent = Map.groupBy(rows, (row) => row.parent);
    this.#byNamespace = Map.groupBy(rows, (row) => row.namespace);
    this.#own = rows.filter(({ ownCommandLine }) => ownCommandLine !== null);
  }

  /** Living processes of a pid namespace and of all namespaces made inside it. */
  members(namespace: string): readonly ProcessRow[] {
    const first = this.#byNamespace.get(namespace) ?? [];
    return descendants(this.byParent, first).filter((row) => !row.isEnded);
  }

  /** Programs of the host that name this folder, or something in it, on their command line. */
  serving(dir: string): readonly ProcessRow[] {
    const names = new RegExp(`${escaped(dir)}(?:[/,\\0]|$)`);
    return this.#own.filter(
      ({ ownCommandLine }) => ownCommandLine?.includes(dir) === true && names.test(ownCommandLine),
    );
  }
}

function readScanned(pid: number): ScannedProcess | null {
  const row = readProcess(pid);
  if (row === null) return null;
  const isOwn = pid !== process.pid && ownPrograms.has(row.name);
  return {
    ...row,
    namespace: pidNamespaceOf(pid),
    ownCommandLine: isOwn ? read(`/proc/${pid}/cmdline`) : null,
  };
}

function readTraced(pid: number): TracedProcess | null {
  const row = readProcess(pid);
  if (row === null || row.isEnded) return null;
  const tracer = /^TracerPid:\s*(\d+)$/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
  return {
    ...row,
    tracer: Number(tracer ?? 0),
    program: programOf(pid),
    tracerCommandLine: row.name === 'proot' ? read(`/proc/${pid}/cmdline`) : null,
  };
}

/** null when it has ended, or belongs to somebody else. */
function programOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return null;
  }
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null; // it has ended
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
