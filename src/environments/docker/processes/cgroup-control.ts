/**
 * Kills by cgroup, seen from the host: whatever a process does inside (setsid, double fork, cleared environment, another session), it stays
 * in the container's cgroup. Passes of SIGKILL come first; when new processes keep appearing (a fork bomb) the container is frozen
 * through the engine, so that nothing can fork between looking and killing. The pid namespace is searched at the end as a
 * second, independent witness.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import type { KillReceipt, ProcessSnapshot } from '../../environment.ts';
import type { ExecTarget } from '../container-exec.ts';
import { engineFailure } from '../engine/engine-error.ts';
import {
  commandLine,
  processesIn,
  readProcess,
  type HostProcess,
  type NamespaceScan,
} from './host-processes.ts';
import { keepAliveCommand, killLimitMs, type ProcessControl } from './process-control.ts';

/** Passes without freezing; a fork bomb survives them, an ordinary tree does not. */
const freePasses = 3;

const frozenFailure = {
  code: 'AGENT_NOT_STOPPED',
  phase: 'agent-stop',
  what: 'freezing the container',
  isRunning: true,
} as const;

export class CgroupControl implements ProcessControl {
  readonly #target: ExecTarget;
  readonly #folder: string;
  readonly #initPid: number;
  readonly #namespaces: NamespaceScan;

  constructor(
    target: ExecTarget,
    at: {
      readonly folder: string;
      readonly initPid: number;
      readonly namespaces: NamespaceScan;
    },
  ) {
    this.#target = target;
    this.#folder = at.folder;
    this.#initPid = at.initPid;
    this.#namespaces = at.namespaces;
  }

  async snapshot(signal: AbortSignal): Promise<ProcessSnapshot> {
    signal.throwIfAborted();
    const living = (await processesIn(this.#folder)).filter((entry) => !entry.isZombie);
    return { keys: new Set(living.map(keyOf)) };
  }

  async kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    const started = performance.now();
    const killed = new Set<string>();
    for (let pass = 0; ; pass += 1) {
      signal.throwIfAborted();
      const left = await this.#outside(keep);
      const strayed = left.length === 0 ? await this.#strayed(keep) : null;
      const targets = strayed ?? left;
      if (left.length === 0 && targets.length === 0)
        return {
          killed: killed.size,
          remaining: 0,
          confirmedBy: strayed === null ? ['cgroup'] : ['cgroup', 'pid-namespace'],
          durationMs: performance.now() - started,
        };
      if (performance.now() - started > killLimitMs) throw notStopped(targets.length);
      for (const entry of targets) killed.add(keyOf(entry));
      if (pass < freePasses) killAll(targets);
      else
        await this.#killFrozen(keep, killed).catch((error: unknown) => {
          throw engineFailure(error, frozenFailure);
        });
      await delay(Math.min(2 ** pass, 50));
    }
  }

  async pids(): Promise<readonly number[]> {
    return (await processesIn(this.#folder)).map(({ pid }) => pid);
  }

  close(): void {
    // Nothing is held between calls.
  }

  async #outside(keep: ProcessSnapshot): Promise<readonly HostProcess[]> {
    return this.#without(await processesIn(this.#folder), keep);
  }

  async #killFrozen(keep: ProcessSnapshot, killed: Set<string>): Promise<void> {
    // Its own bound, and no signal: a container must never stay frozen because somebody lost interest.
    const bound = AbortSignal.timeout(10_000);
    const path = `/containers/${this.#target.containerId}`;
    await this.#target.engine.json({ method: 'POST', path: `${path}/pause`, signal: bound });
    try {
      const left = await this.#outside(keep);
      for (const entry of left) killed.add(keyOf(entry));
      killAll(left);
    } finally {
      await this.#target.engine.json({ method: 'POST', path: `${path}/unpause`, signal: bound });
    }
  }

  /** What the pid namespace shows beside what is kept, once the cgroup shows nothing; null when namespaces cannot be read. */
  async #strayed(keep: ProcessSnapshot): Promise<readonly HostProcess[] | null> {
    const pids = await this.#namespaces.pidsOf(this.#initPid, this.#target.containerId);
    if (pids === null) return null;
    const found = (await Promise.all(pids.map(readProcess))).filter((entry) => entry !== null);
    return this.#without(found, keep);
  }

  async #without(
    found: readonly HostProcess[],
    keep: ProcessSnapshot,
  ): Promise<readonly HostProcess[]> {
    const living = found.filter((entry) => !entry.isZombie);
    const keepers = await keeperPids(living, this.#initPid);
    return living.filter((entry) => !keepers.has(entry.pid) && !keep.keys.has(keyOf(entry)));
  }
}

function keyOf(entry: HostProcess): string {
  return `${entry.pid}:${entry.startTicks}`;
}

function killAll(entries: readonly HostProcess[]): void {
  for (const entry of entries)
    try {
      process.kill(entry.pid, 'SIGKILL');
    } catch {
      // Gone already; one that may not be killed is found again and reported by the caller's limit.
    }
}

/**
 * Init, its first child (the image's entry point) and the chain of processes from there to the keep-alive command. Orphans are
 * adopted by init, later than its first child, so nothing an agent starts can take that place.
 */
async function keeperPids(
  all: readonly HostProcess[],
  initPid: number,
): Promise<ReadonlySet<number>> {
  const keepers = new Set([initPid]);
  const byPid = new Map(all.map((entry) => [entry.pid, entry]));
  const first = all
    .filter((entry) => entry.parent === initPid)
    .sort((a, b) => a.startTicks - b.startTicks || a.pid - b.pid)[0];
  if (first === undefined) return keepers;
  keepers.add(first.pid);
  for (const entry of all) {
    const chain = chainTo(entry, first.pid, byPid);
    if (chain === null || !(await commandLine(entry.pid)).endsWith(keepAliveCommand)) continue;
    for (const pid of chain) keepers.add(pid);
  }
  return keepers;
}

/** The pids from `entry` up to, and without, `ancestor`; null when it does not descend from it. */
function chainTo(
  entry: HostProcess,
  ancestor: number,
  byPid: ReadonlyMap<number, HostProcess>,
): readonly number[] | null {
  const chain: number[] = [];
  for (
    let current: HostProcess | undefined = entry;
    current !== undefined && chain.length < 64;
    current = byPid.get(current.parent)
  ) {
    if (current.pid === ancestor) return chain;
    chain.push(current.pid);
  }
  return null;
}

function notStopped(count: number): RolloutError {
  return new RolloutError(
    'AGENT_NOT_STOPPED',
    `${count} processes of the sandbox are still alive`,
    {
      phase: 'agent-stop',
      remedy: 'Look for processes in uninterruptible sleep on the host; the sandbox is destroyed.',
    },
  );
}
