import type {
  Environment,
  ImageSource,
  InteractiveProcess,
} from '../../../src/environments/environment.ts';

/** What a fake of a provider is asked to make. */
export interface SandboxRequest {
  /** A reference, or a folder with a Dockerfile. */
  readonly image: ImageSource;
  readonly env?: Readonly<Record<string, string>>;
  readonly workdir?: string | null;
  readonly cpus?: number | null;
  readonly memoryMb?: number | null;
  readonly storageMb?: number | null;
  /** In force before anything of the image runs; default: all. */
  readonly egress?: Egress;
  /** Without quotas, slowness and faults: what a fake itself needs. */
  readonly isFree?: boolean;
}

/** Where a sandbox may send packets to, whatever its programs do. */
export type Egress = 'all' | 'none' | { readonly cidrs: readonly string[] };

export interface RunRequest {
  readonly argv: readonly string[];
  readonly cwd?: string | null;
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: string | number | null;
  /** Each piece of output as it comes; must not throw. */
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void;
}

/** A sandbox behind the fake of a provider, real or light. Errors are those of the environment port. */
export interface SandboxBody {
  readonly isLight: boolean;
  /** Makes it; resolves when programs can be run. */
  start(signal: AbortSignal): Promise<void>;
  /** A program goes on when nobody listens any more: only its own end, `kill`, and the end of the sandbox end it. */
  run(request: RunRequest, signal: AbortSignal): Promise<InteractiveProcess>;
  readonly files: Pick<Environment, 'uploadFile' | 'uploadDir' | 'downloadFile' | 'downloadDir'>;
  setEgress(egress: Egress, signal: AbortSignal): Promise<void>;
  isAlive(): Promise<boolean>;
  /** Ends its programs and keeps its files. */
  stop(): Promise<void>;
  /** Removes all of it. Idempotent, in every state. */
  destroy(): Promise<void>;
}
