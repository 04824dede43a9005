import type {
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
} from '../../../src/environments/environment.ts';
import type { AllowedHost } from '../../../src/wire/network-policy.ts';

/** Shell commands by which the cases look at things that a shell alone cannot see. Each prints what its name says. */
export interface Probes {
  /** Prints what a GET of `http://host:port/` answers, straight, without a proxy; fails when nothing answers. */
  readonly fetchDirect: (host: string, port: number) => string;
  /** The same as a program that honours `http_proxy` does it. */
  readonly fetchProxied: (host: string, port: number) => string;
  /** Opens a tunnel (CONNECT) by `https_proxy` and fetches through it. */
  readonly fetchTunnelled: (host: string, port: number) => string;
  /** Holds this many MiB of memory for a moment, then prints `held`. */
  readonly holdMemory: (mebibytes: number) => string;
  /** Uses the processor for this many seconds of wall time, then prints the seconds of processor time it got. */
  readonly burnCpu: (seconds: number) => string;
  /** Tries to have this many children at once and prints `forked N`: how many it got. They are gone when it ends. */
  readonly fork: (children: number) => string;
  /** Makes a system call by number and prints `errno=N` (0 when it worked). */
  readonly systemCall: (name: SystemCall) => string;
  /** Starts a program in the background and returns at once. Its command line holds the marker, a string of digits. */
  readonly linger: (kind: Lingering, marker: string) => string;
}

export type SystemCall = 'unshare-user' | 'keyctl' | 'bpf' | 'mount' | 'reboot';

/**
 * `plain`: a child of the shell. `detached`: double fork, own session, cleared environment, SIGTERM and SIGHUP ignored.
 * `fork-loop`: detached, makes children as fast as it may. `writer`: detached, appends to `/tmp/written` all the time.
 */
export type Lingering = 'plain' | 'detached' | 'fork-loop' | 'writer';

export interface ConformanceAdapter {
  readonly kind: string;
  /** A provider like one in another process: it shares nothing with earlier ones but the runtime. Not yet preflighted. */
  readonly provider: () => EnvironmentProvider;
  /** Reference of a prebuilt image with bash, coreutils, util-linux and perl, run as root; also used in FROM lines. */
  readonly image: string;
  /**
   * What the adapter may decline: a capability it does not declare, or the id of a case it fails. A decline that is not listed
   * fails the run, and so does a listed one that is declared or passes after all.
   */
  readonly declines: readonly (keyof EnvironmentCapabilities | (string & {}))[];
  /** Ids of the cases to run, with their group alone (`exec`) or whole; default: all. */
  readonly only?: readonly string[] | undefined;
  /**
   * What is left of ours on the machine: containers, networks, mounts, cgroups, processes, folders. Asked before and after the suite.
   * All sandboxes of the suite have names that begin with `prefix`: other tests may run on the same machine.
   */
  readonly leftovers: (prefix: string) => Promise<readonly string[]>;
  /** Removes the image that a case built from a context of this hash. */
  readonly forgetImage?: (contextHash: string) => Promise<void>;
  /** Command lines of processes, of all sandboxes, that contain the marker; default: those of the host. */
  readonly processesWith?: (marker: string) => Promise<readonly string[]>;
  readonly probes?: Partial<Probes>;
  /** An address of this host that an allowlist may name, and the entry; default: the first external IPv4 address. */
  readonly allowedTarget?: { readonly address: string; readonly entry: AllowedHost };
  /** Fields that every spec of the suite carries. */
  readonly specDefaults?: Partial<EnvironmentSpec>;
}

/** What a case gets. Everything it starts is destroyed when it ends. */
export interface CaseBench {
  readonly adapter: ConformanceAdapter;
  readonly provider: EnvironmentProvider;
  readonly probes: Probes;
  /** Fires when the case takes too long. */
  readonly signal: AbortSignal;
  /** Empty host folder of this case. */
  readonly folder: string;
  readonly spec: (overrides?: Partial<EnvironmentSpec>) => EnvironmentSpec;
  /** A sandbox of the case's own, started. */
  readonly start: (overrides?: Partial<EnvironmentSpec>) => Promise<Environment>;
  /** An environment object of the case's own, not started. */
  readonly create: (overrides?: Partial<EnvironmentSpec>) => Environment;
  /** One sandbox that several cases use; a case leaves its processes and users as they were. */
  readonly shared: () => Promise<Environment>;
  /** Another provider on the same runtime, as another process would make it. */
  readonly otherProvider: () => Promise<EnvironmentProvider>;
  readonly defer: (release: () => Promise<void>) => void;
}

export interface ConformanceCase {
  /** Stable: printed, and named in lists of declines. */
  readonly id: string;
  /** A sentence about what an environment does. */
  readonly title: string;
  readonly needs?: keyof EnvironmentCapabilities;
  readonly limitMs?: number;
  readonly run: (bench: CaseBench) => Promise<void>;
}
