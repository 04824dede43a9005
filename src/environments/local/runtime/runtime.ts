/** Port inside the local environment: the program that makes sandboxes and puts commands into them. */
import type { ChildProcess } from 'node:child_process';
import { Readable, type Writable } from 'node:stream';
import type { Isolation } from '../../environment.ts';
import type { StoredImage } from '../images/image-store.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import type { OciSandbox, SandboxProcess } from './oci-config.ts';

/** A command that was put into a sandbox. */
export interface SandboxCommand {
  readonly child: ChildProcess;
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The other end of the command's descriptor 3. */
  readonly status: Readable;
  /** Pid on the host of the command itself; null when it never began. Waits for a command that is just beginning. */
  hostPid(): Promise<number | null>;
  /** The program of the host that is putting the command in, of which it will be a child; null once the command itself is known, or nothing runs. */
  starter?(): number | null;
  /** Resolves when the command's own process has ended, or never began. Never rejects. */
  ended(): Promise<void>;
  /** Lets the program of the host that carries the command, which is dead or shall be, collect it and end; kills it when that takes long. Idempotent. */
  release(): void;
}

export interface SandboxPlan {
  readonly folder: SandboxFolder;
  readonly image: StoredImage;
  readonly sandbox: OciSandbox;
}

/** What a runtime can do by itself; limits come from cgroups on top of it. */
export interface RuntimeAbilities {
  /** Cgroups are joined by what the runtime starts. */
  readonly cgroups: boolean;
  /** Has a network namespace for each sandbox. */
  readonly network: boolean;
  /** Has a pid namespace for each sandbox. */
  readonly pidNamespace: boolean;
  /** Its processes have the sandbox's root as their own, so that `/proc/PID/root` leads there. */
  readonly ownRoot: boolean;
  /** Every process has a tracer by which it is found. */
  readonly tracer: boolean;
  readonly users: boolean;
  /** Shows folders of the host that cannot be written to. */
  readonly layers: boolean;
  readonly diskQuota: boolean;
  /** The files can still be read when no process of the sandbox is left. */
  readonly rootOutlivesInit: boolean;
  /** A command's output streams are pipes, not the ends that we hold. */
  readonly givesPipes: boolean;
  /** Who enters the network namespace must enter a user namespace first. */
  readonly hasUserNamespace: boolean;
}

export interface SandboxRuntime {
  readonly name: 'runc' | 'crun' | 'unshare' | 'process';
  readonly isolation: Isolation;
  readonly abilities: RuntimeAbilities;
  /**
   * Makes the sandbox's root from the image and starts its init; resolves with the init's pid on the host when commands can be put
   * in. Rejects with ENVIRONMENT_START_FAILED; what is half made is removed by the sandbox's name.
   */
  start(plan: SandboxPlan, signal: AbortSignal): Promise<number>;
  /** Puts a command in. Never throws for a dead sandbox: the command then ends at once, without a status. */
  command(
    folder: SandboxFolder,
    process: SandboxProcess,
    options: { readonly hasInput: boolean },
  ): SandboxCommand;
}

/**
 * What is killed before it has collected its dead leaves them to the first process of the host, which may take seconds: so long the sandbox's own first
 * process, which waits for all of its namespace, could not end.
 */
const collectMs = 3_000;

/** The streams of a child that was started with pipes at descriptors 1 to 3. */
export function streamsOf(child: ChildProcess): Omit<SandboxCommand, 'hostPid'> {
  const { stdin, stdout, stderr } = child;
  const status = child.stdio[3];
  if (stdout === null || stderr === null || !(status instanceof Readable))
    throw new Error('a command is started with pipes');
  const isEnded = new Promise<void>((resolve) => {
    child.once('exit', () => resolve()).once('error', () => resolve());
  });
  let killer: NodeJS.Timeout | null = null;
  return {
    ...{ child, stdin, stdout, stderr, status },
    ended: () => isEnded,
    release: () => {
      if (killer !== null || child.exitCode !== null || child.signalCode !== null) return;
      killer = setTimeout(() => child.kill('SIGKILL'), collectMs).unref();
      void isEnded.then(() => clearTimeout(killer ?? undefined));
    },
  };
}
