/**
 * The processes of one sandbox, found by its cgroup, by its pid namespace and by their tracer: neither setsid, nor a double fork, nor a
 * cleared environment leaves them. To kill, they are frozen first where they can be, so that a fork bomb stands still while it is shot.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';
import type { SandboxCgroup } from '../cgroups/cgroup-tree.ts';
import { HeldNamespace } from './held-namespace.ts';
import {
  killNow,
  pidNamespaceMembers,
  pidNamespaceOf,
  processKey,
  readProcess,
  type ProcessRow,
} from './process-table.ts';
import type { TracedProcesses } from './traced-processes.ts';

const freezeMs = 200;
const pollMs = 2;
/** For programs of the host that end by themselves with the last process that they carry. */
const settleMs = 2_000;

export class SandboxProcesses {
  readonly #cgroup: SandboxCgroup | null;
  /** Held, so that its number stays this sandbox's. */
  #namespace: HeldNamespace | null;
  readonly #traced: TracedProcesses | null;

  /** @param options.hasNamespace False when the sandbox shares the host's pid namespace. */
  constructor(
    initPid: number,
    options: {
      readonly cgroup: SandboxCgroup | null;
      readonly hasNamespace: boolean;
      readonly traced: TracedProcesses | null;
    },
  ) {
    this.#traced = options.traced;
    this.#cgroup = options.cgroup;
    this.#namespace = options.hasNamespace ? HeldNamespace.of(initPid) : null;
    if (this.#namespace?.id === pidNamespaceOf(process.pid)) this.close();
  }

  /** Lets go of the pid namespace; nothing is looked for in it afterwards. Idempotent. */
  close(): void {
    this.#namespace?.[Symbol.dispose]();
    this.#namespace = null;
  }

  get confirmedBy(): KillReceipt['confirmedBy'] {
    return [
      ...(this.#cgroup === null ? [] : ['cgroup' as const]),
      ...(this.#namespace === null ? [] : ['pid-namespace' as const]),
      ...(this.#traced === null ? [] : ['tracer' as const]),
    ];
  }

  /** Living processes, by every way of looking. */
  all(): readonly ProcessRow[] {
    const rows = new Map<number, ProcessRow>();
    for (const row of this.#namespace === null ? [] : pidNamespaceMembers(this.#namespace.id))
      rows.set(row.pid, row);
    for (const row of this.#traced?.all() ?? []) rows.set(row.pid, row);
    for (const pid of this.#cgroup?.pids() ?? []) {
      const row = rows.get(pid) ?? readProcess(pid);
      if (row !== null && !row.isEnded) rows.set(pid, row);
    }
    return [...rows.values()];
  }

  keys(): ReadonlySet<string> {
    return new Set(this.all().map(processKey));
  }

  /** Kills all but `keep`. AGENT_NOT_STOPPED when some are left at `deadlineMs`; the reason when `signal` fires. */
  async kill(
    keep: ProcessSnapshot,
    options: { readonly deadlineMs: number; readonly signal: AbortSignal },
  ): Promise<KillReceipt> {
    const start = performance.now();
    const killed = new Set<string>();
    for (;;) {
      options.signal.throwIfAborted();
      const victims = await this.#round(keep.keys);
      for (const row of victims) killed.add(processKey(row));
      if (victims.length === 0 && this.#outside(keep.keys).length === 0) break;
      if (performance.now() - start > options.deadlineMs) throw survivors(victims);
      await delay(pollMs);
    }
    await this.#settle();
    return {
      killed: killed.size,
      remaining: 0,
      confirmedBy: this.confirmedBy,
      durationMs: performance.now() - start,
    };
  }

  async #settle(): Promise<void> {
    const until = performance.now() + settleMs;
    while (this.#traced?.hasIdleTracer === true && performance.now() < until) await delay(pollMs);
  }

  /** One round: hold still, look, shoot, let go (a frozen process of a version 1 cgroup dies only when thawed). */
  async #round(keep: ReadonlySet<string>): Promise<readonly ProcessRow[]> {
    if (this.#outside(keep).length === 0) return [];
    const cgroup = this.#cgroup;
    try {
      this.#traced?.setFrozen(true);
      if (cgroup?.setFrozen(true) === true) await waitFrozen(cgroup);
      const victims = this.#outside(keep);
      for (const row of victims) killNow(row.pid);
      return victims;
    } finally {
      cgroup?.setFrozen(false);
      this.#traced?.setFrozen(false);
    }
  }

  #outside(keep: ReadonlySet<string>): readonly ProcessRow[] {
    return this.all().filter((row) => !keep.has(processKey(row)));
  }
}

async function waitFrozen(cgroup: SandboxCgroup): Promise<void> {
  const until = performance.now() + freezeMs;
  while (!cgroup.isFrozen && performance.now() < until) await delay(1);
}

function survivors(rows: readonly ProcessRow[]): RolloutError {
  return new RolloutError('AGENT_NOT_STOPPED', `${rows.length} processes cannot be killed`, {
    phase: 'agent-stop',
    detail: `pids ${rows.map((row) => row.pid).join(', ')}`,
    remedy: 'Look for processes that wait for a device or a network file system.',
  });
}
