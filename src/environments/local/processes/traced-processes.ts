/**
 * The processes of a sandbox without namespaces, found by what the kernel says about them: their tracer is the sandbox's proot, or they
 * run its loader, which every program that proot starts does, also when the proot itself was killed. Neither setsid, nor a
 * double fork, nor a cleared environment changes that.
 */
import type { SandboxFolder } from '../sandbox-folder.ts';
import type { HostScan, TracedProcess } from './host-scan.ts';
import { signalRow, type ProcessRow } from './process-table.ts';

export class TracedProcesses {
  readonly #folder: Pick<SandboxFolder, 'loader' | 'rootfs'>;
  readonly #scan: HostScan;

  constructor(folder: Pick<SandboxFolder, 'loader' | 'rootfs'>, scan: HostScan) {
    this.#folder = folder;
    this.#scan = scan;
  }

  /** Living processes, the tracers not among them. */
  async all(): Promise<readonly ProcessRow[]> {
    const rows = await this.#scan.traced();
    const tracers = new Set(this.#tracers(rows).map(({ pid }) => pid));
    return rows.filter(
      ({ pid, tracer, program }) =>
        !tracers.has(pid) && (tracers.has(tracer) || program === this.#folder.loader),
    );
  }

  /** A traced process goes no further than its next call while its tracer is stopped, so that nothing outruns a kill. */
  async setFrozen(isFrozen: boolean): Promise<void> {
    for (const row of this.#tracers(await this.#scan.traced()))
      signalRow(row, isFrozen ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Whether a tracer is about to end, because nothing is left of what it traced. It still shows its command's words. */
  async hasIdleTracer(): Promise<boolean> {
    const rows = await this.#scan.traced();
    const busy = new Set(rows.map(({ tracer }) => tracer));
    return this.#tracers(rows).some(({ pid }) => !busy.has(pid));
  }

  /** The proots of the sandbox, as opposed to a child of one that is only just being started. */
  #tracers(rows: readonly TracedProcess[]): readonly TracedProcess[] {
    const word = `\0-r\0${this.#folder.rootfs}\0`;
    return rows.filter(
      ({ tracer, tracerCommandLine }) => tracer === 0 && tracerCommandLine?.includes(word) === true,
    );
  }
}
