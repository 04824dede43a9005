/**
 * The environment port: the sandbox that a trial runs in. One adapter per runtime (`docker/`, `local/`), one conformance suite
 * (`tests/conformance/environment-suite.ts`) that every adapter and the fake pass.
 *
 * Life: `provider.environment(spec)` makes an object and touches nothing; `start` creates the sandbox; `stop` ends its
 * processes and keeps its files; `destroy` removes everything and says what it confirmed. `destroy` is legal in every state, also
 * after a failed or aborted `start`, is idempotent, and never runs under the signal that ended the trial.
 * Adapters do not journal, limit or label on their own: `shared/owned-provider.ts` wraps every adapter with that.
 */
import type { NetworkPolicy } from '../wire/network-policy.ts';
import type { ProcessView } from '../wire/rollout/process-view.ts';

export interface EnvironmentCapabilities {
  /** Side services from a compose file. */
  readonly compose: boolean;
  readonly cpuLimit: boolean;
  readonly memoryLimit: boolean;
  readonly pidsLimit: boolean;
  /** A quota on the sandbox's disk (`storage_mb`). Without it the field is ignored, as Harbor does on Docker. */
  readonly diskQuota: boolean;
  readonly gpus: boolean;
  readonly tpus: boolean;
  /** Commands as another user than the image's. */
  readonly users: boolean;
  readonly noNetwork: boolean;
  readonly allowlist: boolean;
  /** `setNetworkPolicy` between the phases of a trial. */
  readonly dynamicNetworkPolicy: boolean;
  /** Exactly one address of the host, and nothing else of it. */
  readonly hostEndpoint: boolean;
  /** Folders of the host that a sandbox sees and cannot change. */
  readonly layers: boolean;
  /** Images from a Dockerfile. */
  readonly build: boolean;
  readonly windows: boolean;
}

/** `strict`: own namespaces, seccomp, dropped capabilities. `weak`: namespaces without limits or filters, or the host's network. `none`: plain processes. */
export type Isolation = 'strict' | 'weak' | 'none';

export type ImageSource =
  | { readonly kind: 'prebuilt'; readonly reference: string }
  | {
      readonly kind: 'dockerfile';
      /** Absolute host folder: build context, holds `Dockerfile`. */
      readonly contextDir: string;
      /** Hash of the context (spec §2.4 environment content hash): equal hashes share one image. */
      readonly contextHash: string;
    }
  | {
      readonly kind: 'compose';
      /** Absolute host folder with the compose file; project directory and `${CONTEXT_DIR}`. */
      readonly contextDir: string;
      readonly contextHash: string;
      /** Absolute paths, in order of precedence (later wins). */
      readonly composeFiles: readonly string[];
      /** Image of the service `main` when no Dockerfile builds it. */
      readonly mainImage: string | null;
    };

/** Absent limits are null: no limit of ours. */
export interface ResourceLimits {
  readonly cpus: number | null;
  readonly memoryMb: number | null;
  readonly storageMb: number | null;
  readonly pids: number | null;
}

/** The one host address a sandbox may reach whatever its network policy: the model gateway. */
export interface HostEndpoint {
  /** Address and port on the host, usually loopback. */
  readonly host: string;
  readonly port: number;
}

/** A folder of the host at a place of its own in the sandbox, for every process there to read and none to write. */
export interface EnvironmentLayer {
  /** Absolute; stays as it is while the sandbox lives. */
  readonly hostDir: string;
  /** Absolute, in its plain form; what the image has there is hidden. Neither the root nor a place inside another layer. */
  readonly at: string;
}

export interface SandboxLabels {
  readonly storeId: string;
  readonly runId: string;
  readonly trial: string;
  /** ISO 8601; after it a sandbox is stale even if nobody remembers its run. */
  readonly expiresAt: string;
}

export interface EnvironmentSpec {
  /** Unique name, `[a-z0-9][a-z0-9-]{0,62}`; the key for removal after a crash. */
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly image: ImageSource;
  /** Build even when an image of this content exists. */
  readonly forceBuild: boolean;
  /** Default cwd of `exec`; null = the image's WORKDIR. Created when missing. */
  readonly workdir: string | null;
  /** Container environment, also seen by the image's ENTRYPOINT. Values are literal. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ResourceLimits;
  readonly network: NetworkPolicy;
  /** Policies that `setNetworkPolicy` may be asked for later; the adapter prepares for them at start. */
  readonly laterNetworks: readonly NetworkPolicy[];
  readonly hostEndpoint: HostEndpoint | null;
  /** Host file with extra CA certificates (PEM), brought into the sandbox and named by the usual variables; null = none. */
  readonly extraCaBundle: string | null;
  /** CAPABILITY_UNSUPPORTED where the environment has none. */
  readonly layers: readonly EnvironmentLayer[];
}

export interface StartReport {
  /** Getting the image: pull, build, unpack. 0 when it was ready. */
  readonly imageMs: number;
  /** From "image ready" to "exec works". */
  readonly bootMs: number;
}

export interface ExecRequest {
  /** Run as `bash -c COMMAND`, or `sh -c` where the image has no bash. */
  readonly command: string;
  /** null = the spec's workdir, else the image's WORKDIR. */
  readonly cwd?: string | null;
  /** Over the container environment. Never on any command line of the host. */
  readonly env?: Readonly<Record<string, string>>;
  /** Name or numeric id; null = the image's USER. */
  readonly user?: string | number | null;
  /** Kills the command's process group at the limit and rejects with EXEC_TIMEOUT; null = none. */
  readonly timeoutMs?: number | null;
  /** Bytes for the command's standard input; absent = empty. */
  readonly stdin?: Uint8Array;
  /** Called with each piece of output as it comes; must not throw. */
  readonly onOutput?: (stream: 'stdout' | 'stderr', text: string) => void;
}

export interface ExecResult {
  readonly exitCode: number;
  /** UTF-8, invalid bytes replaced. The first `maxCapturedBytes` of each stream are kept. */
  readonly stdout: string;
  readonly stderr: string;
  /** Output went over `maxCapturedBytes` and its rest was dropped (`onOutput` saw all of it). */
  readonly isTruncated: boolean;
}

/** How much of each stream an `ExecResult` keeps. */
export const maxCapturedBytes = 4 * 1024 * 1024;

/** One shell that stays open in the sandbox: commands over it cost a write and a read instead of a new exec. */
export interface ControlChannel {
  /**
   * Runs one command at a time, in order of calls. `user` is that of the channel. A non-zero exit is a result; a dead shell
   * rejects with ENVIRONMENT_LOST; a timeout kills the command, rejects with EXEC_TIMEOUT and leaves the channel usable.
   */
  exec(
    request: Pick<ExecRequest, 'command' | 'cwd' | 'env' | 'timeoutMs'>,
    signal: AbortSignal,
  ): Promise<ExecResult>;
  /** Ends the shell. Idempotent. */
  close(): Promise<void>;
}

export interface ProcessRequest extends Pick<ExecRequest, 'command' | 'cwd' | 'env' | 'user'> {
  /** Called with each piece of output as it comes, bytes as written; must not throw. */
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void;
}

/** A program in the sandbox, without a terminal, whose standard input stays open. */
export interface InteractiveProcess {
  /** Resolves when the bytes were taken. Rejects with ENVIRONMENT_LOST when the program has ended. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Ends its input. Idempotent. */
  endInput(): void;
  /** Exit code as a shell tells it; null when it was SIGKILLed or its sandbox went. Never rejects. All output has been delivered before. */
  readonly exited: Promise<number | null>;
  /** SIGKILLs it with its descendants; resolves when it has ended. Idempotent. */
  kill(): Promise<void>;
}

/** Processes that were running at one moment; opaque to callers. */
export interface ProcessSnapshot {
  /** Pid and start time of each, as seen by the adapter. */
  readonly keys: ReadonlySet<string>;
}

export interface KillReceipt {
  readonly killed: number;
  /** Processes outside the snapshot that are still alive: 0, or the call rejects with AGENT_NOT_STOPPED. */
  readonly remaining: 0;
  /** Where survivors were looked for. */
  readonly confirmedBy: readonly ('cgroup' | 'pid-namespace' | 'tracer')[];
  readonly durationMs: number;
}

export interface DestroyReceipt {
  readonly name: string;
  /** Kinds of things looked for and found absent afterwards: `container`, `process`, `network`, `cgroup`, `mount`, `directory`, `proxy`. */
  readonly confirmedGone: readonly string[];
  readonly durationMs: number;
}

/** Copy options. Copies never follow a link out of the named tree, in either direction. */
export interface DownloadOptions {
  /** Globs as tar reads them: on the path relative to the source or its end behind any folder, `*` crosses folders. */
  readonly exclude?: readonly string[];
  /** More than this many bytes reject with TRANSFER_FAILED; default 4 GiB. */
  readonly maxBytes?: number;
}

export interface Environment {
  readonly name: string;
  /** Base URL at which the spec's host endpoint is reached from inside; null without one, or before `start`. */
  readonly hostEndpointUrl: string | null;

  /**
   * Creates the sandbox; resolves when `exec` works. Called once. Rejects with IMAGE_NOT_FOUND, IMAGE_BUILD_FAILED,
   * CAPABILITY_UNSUPPORTED, ENVIRONMENT_UNAVAILABLE,
   * ENVIRONMENT_THROTTLED, SANDBOX_HOURS_EXHAUSTED, DISK_FULL or ENVIRONMENT_START_FAILED. When `signal` fires it stops waiting
   * and rejects with the reason; the caller destroys in every case.
   */
  start(options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
    /**
     * To be awaited before each create call of this start, when all that the call needs is ready: an image may take long to build, and others create meanwhile.
     * Rejects with SANDBOX_HOURS_EXHAUSTED or the reason of `signal`.
     */
    readonly admitCreate?: (signal: AbortSignal) => Promise<void>;
  }): Promise<StartReport>;

  /** Runs a command. Non-zero exits are results. When `signal` fires the command's process group is killed and the call rejects with the reason. */
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;

  /** Opens a shell as `user` (null = image's USER). */
  openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel>;

  /**
   * Starts a program (as `exec` does) and answers at once. `signal` ends the wait for its start and, later, kills it. It is killed with the
   * agent's other processes by `killProcesses`, and by `stop` and `destroy`. EXEC_FAILED when it cannot be started.
   */
  openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess>;

  /** Host file → sandbox file; parents are created; owner root, mode kept. An existing folder at `to` is TRANSFER_FAILED. */
  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void>;
  /** CONTENTS of a host folder → sandbox folder (created, merged into); owner root, modes kept, links copied as links. */
  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void>;
  /** Sandbox file → host file. A link, device or folder at `from` is TRANSFER_FAILED; a missing file too. */
  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void>;
  /**
   * CONTENTS of a sandbox folder → host folder (created, merged into), owned by this process. Regular files and folders only:
   * links and devices are left out and their paths returned. A missing folder is TRANSFER_FAILED.
   */
  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }>;

  /** Whether the sandbox runs and `exec` would be tried. Never throws for a dead sandbox. */
  isAlive(signal: AbortSignal): Promise<boolean>;

  /** The processes running now, to be kept by a later `killProcesses`. */
  snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot>;
  /**
   * SIGKILLs every process of the sandbox outside `keep` and the sandbox's own init, looked for by cgroup, pid namespace or tracer (so
   * setsid, a double fork or a cleared environment hides nothing), until none is left. Open control channels die too.
   */
  killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt>;

  /**
   * The processes that live now and what each waits for, the sandbox's own init and what keeps it up included; cheap, and changes nothing. null where
   * they cannot be looked at, or the sandbox does not run. Rejects only with the reason of `signal`.
   */
  inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null>;

  /** Replaces the network policy. CAPABILITY_UNSUPPORTED unless `dynamicNetworkPolicy`. Connections that the new policy forbids end. */
  setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void>;

  /** Side services; `main` = the sandbox itself, whose `stop` leaves the others running. SERVICE_UNSUPPORTED without `compose`. Runs as `sh -c`, with no default cwd or user. */
  service(name: string): ServiceAccess;

  /** Ends all processes, keeps the files: downloads still work, `exec` rejects with ENVIRONMENT_LOST. Idempotent. */
  stop(signal: AbortSignal): Promise<void>;

  /** Removes all of it within `deadlineMs`. Idempotent; concurrent calls share one promise. ENVIRONMENT_DESTROY_FAILED names what is left. */
  destroy(options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt>;
}

export interface ServiceAccess {
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  downloadFile: Environment['downloadFile'];
  downloadDir: Environment['downloadDir'];
  stop(signal: AbortSignal): Promise<void>;
}

/** A sandbox as found by label, whoever made it. */
export interface FoundSandbox {
  readonly name: string;
  readonly labels: SandboxLabels;
}

export interface EnvironmentProvider {
  /** `docker`, `local`, `fake`. */
  readonly kind: string;
  readonly isolation: Isolation;
  /** Valid after `preflight`. */
  readonly capabilities: EnvironmentCapabilities;
  /** The sandboxes are on other machines: of this one they reach at most a public address. */
  readonly isRemote?: boolean;
  /** Create calls per second that the provider is known to take, where nobody sets another number; absent = no limit. */
  readonly defaultCreatesPerSecond?: number;

  /** Probes the runtime once; ENVIRONMENT_UNAVAILABLE says what is missing and how to get it. Idempotent. */
  preflight(signal: AbortSignal): Promise<void>;
  /** Makes an environment object; touches nothing. */
  environment(spec: EnvironmentSpec): Environment;
  /** Removes whatever carries this name, also half-made things. Resolves when nothing of it is left. Idempotent. */
  destroyByName(name: string, options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt>;
  /** Every sandbox that carries labels of this project, for cleaning up and for `slipway cleanup`. */
  list(signal: AbortSignal): Promise<readonly FoundSandbox[]>;
  /** Frees what the provider holds itself (connections, proxies). Environments are destroyed before. Idempotent. */
  close(): Promise<void>;
}
