/**
 * The processes of one sandbox, found by its cgroup, by its pid namespace and by their tracer: neither setsid, nor a double fork, nor a
 * cleared environment leaves them. To kill, they are held still first, so that a fork bomb is shot standing: by the freezer of the cgroup, by
 * their tracer, else by stopping one after the other until a look finds none that moves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import type { LoopTurns } from '../../../core/loop-turns.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';
import type { SandboxCgroup } from '../cgroups/cgroup-tree.ts';
import { HeldNamespace } from './held-namespace.ts';
import type { HostScan } from './host-scan.ts';
import {
  pidNamespaceOf,
  processKey,
  readProcess,
  signalRow,
  type ProcessRow,
} from './process-table.ts';
import type { TracedProcesses } from './traced-processes.ts';

const freezeMs = 200;
/** Passes over a cgroup without freezing it. */
const freePasses = 3;
const pollMs = 2;
/** Looks until what cannot be frozen as a whole stands still; killed moving after that. */
const stopLooks = 5;
/** For programs of the host that end by themselves with the last process that they carry. */
const settleMs = 2_000;

export interface SandboxProcessesParts {
  readonly cgroup: SandboxCgroup | null;
  /** False when the sandbox shares the host's pid namespace. */
  readonly hasNamespace: boolean;
  readonly traced: TracedProcesses | null;
  readonly scan: HostScan;
  readonly turns: LoopTurns;
}

export class SandboxProcesses {
  readonly #cgroup: SandboxCgroup | null;
  /** Held, so that its number stays this sandbox's. */
  #namespace: HeldNamespace | null;
  readonly #traced: TracedProcesses | null;
  readonly #scan: HostScan;
  readonly #turns: LoopTurns;

  constructor(initPid: number, parts: SandboxProcessesParts) {
    this.#traced = parts.traced;
    this.#cgroup = parts.cgroup;
    this.#scan = parts.scan;
    this.#turns = parts.turns;
    this.#namespace = parts.hasNamespace ? HeldNamespace.of(initPid) : null;
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

  /**
   * Living processes, by every way of looking. One that has ended since it was seen is in the answer too: it may have left a child that only the
   * next look finds, so that only an answer without it proves anything.
   */
  async all(): Promise<readonly ProcessRow[]> {
    const namespace = this.#namespace?.id ?? null;
    const members = namespace === null ? [] : (await this.#scan.table()).members(namespace);
    const traced = (await this.#traced?.all()) ?? [];
    // The group last: it is looked at in an instant, so that nothing of it is older than the answer.
    const rows = new Map([...members, ...traced, ...this.#inGroup()].map((row) => [row.pid, row]));
    return [...rows.values()];
  }

  /**
   * Shoots once at what the cgroup shows outside `keep`, for next to nothing; answers what was there. It proves nothing: that is what `kill` is for.
   * null = there is no cgroup.
   */
  async shoot(keep: ProcessSnapshot): Promise<readonly ProcessRow[] | null> {
    if (this.#cgroup === null) return null;
    const seen = without(keep.keys, this.#inGroup());
    await this.#roundOfGroup(keep.keys, 1);
    return seen;
  }

  async keys(): Promise<ReadonlySet<string>> {
    return new Set((await this.all()).map(processKey));
  }

  /** Kills all but `keep`; `seen` counts as killed too when it has ended already. AGENT_NOT_STOPPED when some are left at `deadlineMs`; the reason when `signal` fires. */
  async kill(
    keep: ProcessSnapshot,
    options: {
      readonly deadlineMs: number;
      readonly signal: AbortSignal;
      readonly seen?: readonly ProcessRow[];
    },
  ): Promise<KillReceipt> {
    const start = performance.now();
    const killed = new Set(without(keep.keys, options.seen ?? []).map(processKey));
    for (let pass = 1; ; pass += 1) {
      options.signal.throwIfAborted();
      const victims = await this.#round(keep.keys, pass);
      for (const row of victims) if (row.startTime !== '') killed.add(processKey(row));
      if (victims.length === 0) break;
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
    while ((await this.#traced?.hasIdleTracer()) === true && performance.now() < until)
      await delay(pollMs);
  }

  /**
   * One round: what the cgroup shows first, as that costs next to nothing; then by every way of looking. None is the answer of a whole look that
   * found none.
   */
  async #round(keep: ReadonlySet<string>, pass: number): Promise<readonly ProcessRow[]> {
    const shot = await this.#roundOfGroup(keep, pass);
    if (shot.length > 0) return shot;
    if (this.#traced !== null) return await this.#roundOfTraced(this.#traced, keep);
    return await this.#roundByStopping(keep);
  }

  /**
   * An ordinary tree does not survive some passes of shooting. What goes on making processes is held still for it (a frozen process of a version 1
   * cgroup dies only when thawed).
   */
  async #roundOfGroup(keep: ReadonlySet<string>, pass: number): Promise<readonly ProcessRow[]> {
    const cgroup = this.#cgroup;
    await this.#turns.next('end');
    if (cgroup === null || without(keep, this.#inGroup()).length === 0) return [];
    const isFrozen = pass > freePasses && cgroup.setFrozen(true);
    try {
      if (isFrozen) await waitFrozen(cgroup);
      const victims = without(keep, this.#inGroup());
      for (const row of victims) signalRow(row, 'SIGKILL');
      return victims;
    } finally {
      if (isFrozen) cgroup.setFrozen(false);
    }
  }

  async #roundOfTraced(
    traced: TracedProcesses,
    keep: ReadonlySet<string>,
  ): Promise<readonly ProcessRow[]> {
    if ((await this.#outside(keep)).length === 0) return [];
    try {
      await traced.setFrozen(true);
      const victims = await this.#outside(keep);
      for (const row of victims) signalRow(row, 'SIGKILL');
      return victims;
    } finally {
      await traced.setFrozen(false);
    }
  }

  async #roundByStopping(keep: ReadonlySet<string>): Promise<readonly ProcessRow[]> {
    let victims: readonly ProcessRow[] = [];
    for (let look = 1; look <= stopLooks; look += 1) {
      victims = await this.#outside(keep);
      if (victims.every((row) => row.isStopped)) break;
      for (const row of victims) signalRow(row, 'SIGSTOP');
    }
    for (const row of victims) signalRow(row, 'SIGKILL');
    return victims;
  }

  #inGroup(): readonly ProcessRow[] {
    const rows = (this.#cgroup?.pids() ?? []).map((pid) => readProcess(pid) ?? justEnded(pid));
    return rows.filter((row) => !row.isEnded);
  }

  async #outside(keep: ReadonlySet<string>): Promise<readonly ProcessRow[]> {
    return without(keep, await this.all());
  }
}

function without(keep: ReadonlySet<string>, rows: readonly ProcessRow[]): readonly ProcessRow[] {
  return rows.filter((row) => !keep.has(processKey(row)));
}

/** It was in the group a moment ago, and may have left a child there. */
function justEnded(pid: number): ProcessRow {
  const unknown = { parent: 0, group: 0, session: 0, name: '', startTime: '' };
  return { pid, ...unknown, isEnded: false, isStopped: true };
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
