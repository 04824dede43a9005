/**
 * The processes of a sandbox without namespaces, found by what the kernel says about them: their tracer is the sandbox's proot, or they
 * run its loader, which every program that proot starts does, also when the proot itself was killed. Neither setsid, nor a
 * double fork, nor a cleared environment changes that.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { allPids, readProcess, type ProcessRow } from './process-table.ts';

export class TracedProcesses {
  readonly #folder: Pick<SandboxFolder, 'loader' | 'rootfs'>;

  constructor(folder: Pick<SandboxFolder, 'loader' | 'rootfs'>) {
    this.#folder = folder;
  }

  /** Living processes, the tracers not among them. */
  all(): readonly ProcessRow[] {
    const pids = allPids();
    const tracers = new Set(this.#tracers(pids));
    return pids
      .filter((pid) => !tracers.has(pid) && (tracers.has(tracerOf(pid)) || this.#runsLoader(pid)))
      .map(readProcess)
      .filter((row) => row !== null)
      .filter((row) => !row.isEnded);
  }

  /** A traced process goes no further than its next call while its tracer is stopped, so that nothing outruns a kill. */
  setFrozen(isFrozen: boolean): void {
    for (const pid of this.#tracers(allPids()))
      try {
        process.kill(pid, isFrozen ? 'SIGSTOP' : 'SIGCONT');
      } catch {
        // it has ended
      }
  }

  /** Whether a tracer is about to end, because nothing is left of what it traced. It still shows its command's words. */
  get hasIdleTracer(): boolean {
    const pids = allPids();
    const busy = new Set(
      pids.filter((pid) => readProcess(pid)?.isEnded === false).map((pid) => tracerOf(pid)),
    );
    return this.#tracers(pids).some((pid) => !busy.has(pid));
  }

  #tracers(pids: readonly number[]): readonly number[] {
    return pids.filter((pid) => isTracer(pid, this.#folder.rootfs));
  }

  #runsLoader(pid: number): boolean {
    try {
      return readlinkSync(`/proc/${pid}/exe`) === this.#folder.loader;
    } catch {
      return false; // it has ended, or belongs to somebody else
    }
  }
}

/** The proot of a sandbox, as opposed to a child of it that is only just being started. */
function isTracer(pid: number, rootfs: string): boolean {
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'latin1') !== 'proot\n') return false;
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return line.includes(`\0-r\0${rootfs}\0`) && tracerOf(pid) === 0;
  } catch {
    return false;
  }
}

/** 0 when nobody traces it, or it has ended. */
function tracerOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^TracerPid:\s*(\d+)$/m.exec(status)?.[1] ?? 0);
  } catch {
    return 0;
  }
}
