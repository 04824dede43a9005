/** What this machine can do for the local environment, found out once by `preflight`. */
import type { EnvironmentCapabilities } from '../environment.ts';
import type { CgroupTree } from './cgroups/cgroup-tree.ts';
import type { SandboxRuntime } from './runtime/runtime.ts';

export interface Machine {
  readonly runtime: SandboxRuntime;
  /** null when no cgroup can be written, or the runtime does not join them. */
  readonly cgroups: CgroupTree | null;
  /** Why public sandboxes cannot have a network of their own and share the host's, with the remedy; null = they have one. */
  readonly userNetworkLack: string | null;
  /** A static init to reap orphans, absolute; null = a shell of the image does it. */
  readonly initProgram: string | null;
  readonly capabilities: EnvironmentCapabilities;
}
