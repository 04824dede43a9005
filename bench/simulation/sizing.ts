/** How many hosts a number of live rollouts needs, in closed form. The simulation says whether that holds. */
import type { RolloutCosts } from './fleet-model.ts';

export interface Workload {
  readonly name: string;
  readonly turns: number;
  /** Means: one model call, one command, the verifier. */
  readonly callMs: number;
  readonly commandMs: number;
  readonly verifyMs: number;
  readonly eventsPerCall: number;
  /** Of a sandbox with its agent, in use. */
  readonly sandboxMib: number;
  /** What commands and verifier take of processors beyond what ours take. */
  readonly taskCpuMs: number;
}

export interface HostKind {
  readonly cores: number;
  readonly memoryGib: number;
}

export interface HostLimits {
  readonly memory: number;
  readonly processors: number;
  readonly thread: number;
}

/** What is kept free: memory for the kernel and page cache, processors for bursts. */
const memoryShare = 0.85;
const processorShare = 0.7;
const threadShare = 0.6;

/** Of one rollout in its place, ms. */
export function lifeMs({ turns, callMs, commandMs, verifyMs }: Workload): number {
  return turns * (callMs + commandMs) + verifyMs;
}

/** Live rollouts that each of its parts carries; the least of them is what the host carries. */
export function hostLimits(workload: Workload, host: HostKind, costs: RolloutCosts): HostLimits {
  const { turns, sandboxMib, taskCpuMs } = workload;
  const hostCpuMs = costs.hostMs + turns * costs.turnHostMs + taskCpuMs;
  const threadMs = costs.workerThreadMs + turns * costs.callThreadMs;
  return {
    memory: Math.floor((host.memoryGib * 1_024 * memoryShare) / sandboxMib),
    processors: Math.floor((host.cores * processorShare * lifeMs(workload)) / hostCpuMs),
    thread: Math.floor((threadShare * lifeMs(workload)) / threadMs),
  };
}

export function livePerHost(limits: HostLimits): number {
  return Math.max(1, Math.min(limits.memory, limits.processors, limits.thread));
}

export function narrowest(limits: HostLimits): keyof HostLimits {
  const names = Object.keys(limits) as (keyof HostLimits)[];
  return names.reduce((least, name) => (limits[name] < limits[least] ? name : least));
}
