/**
 * A sandbox that has been started: its init, processes, network and commands. Made by `bootSandbox`; after `stop` its files remain until
 * its folder is removed.
 */
import type { ProcessSnapshot, KillReceipt } from '../environment.ts';
import { RolloutError } from '../../core/errors.ts';
import { SandboxCommands, type SandboxCommandsOptions } from './exec/sandbox-commands.ts';
import type { SandboxNetwork } from './network/sandbox-network.ts';
import { familyOf, processKey, readProcess, type ProcessRow } from './processes/process-table.ts';
import type { SandboxProcesses } from './processes/sandbox-processes.ts';

const killMs = 10_000;

export interface SandboxParts {
  readonly initPid: number;
  readonly processes: SandboxProcesses;
  readonly network: SandboxNetwork | null;
  readonly rootOutlivesInit: boolean;
  /** The root is seen at `/proc/PID/root` of the init. */
  readonly hasOwnRoot: boolean;
  readonly commands: Omit<SandboxCommandsOptions, 'isAlive' | 'rootPath' | 'networkVariables'>;
}

export class Sandbox {
  readonly network: SandboxNetwork | null;
  readonly commands: SandboxCommands;
  readonly #initPid: number;
  readonly #initKey: string;
  readonly #rootfs: string;
  readonly #processes: SandboxProcesses;
  /** The init and what the image's ENTRYPOINT had started before the first command. */
  readonly #ownKeys: ReadonlySet<string>;
  readonly #rootOutlivesInit: boolean;
  readonly #hasOwnRoot: boolean;
  #isStopped = false;

  constructor(parts: SandboxParts) {
    this.network = parts.network;
    this.#rootOutlivesInit = parts.rootOutlivesInit;
    this.#hasOwnRoot = parts.hasOwnRoot;
    this.#initPid = parts.initPid;
    this.#rootfs = parts.commands.folder.rootfs;
    this.#processes = parts.processes;
    const family = familyOf(parts.initPid).map(processKey);
    this.#initKey = family[0] ?? '';
    this.#ownKeys = new Set(family);
    this.commands = new SandboxCommands({
      ...parts.commands,
      isAlive: () => this.isAlive,
      rootPath: () => this.rootPath,
      networkVariables: () => parts.network?.variables ?? [],
    });
  }

  get isAlive(): boolean {
    return !this.#isStopped && this.#hasInit;
  }

  /** While it runs, the root as its own processes see it, mounts included; afterwards what is left of it on disk. */
  get rootPath(): string {
    return this.#hasOwnRoot && this.#hasInit ? `/proc/${this.#initPid}/root` : this.#rootfs;
  }

  get #hasInit(): boolean {
    const row = readProcess(this.#initPid);
    return row !== null && !row.isEnded && processKey(row) === this.#initKey;
  }

  requireAlive(): void {
    if (this.isAlive) return;
    throw new RolloutError('ENVIRONMENT_LOST', 'the sandbox does not run any more', {
      phase: 'environment',
    });
  }

  async snapshot(): Promise<ProcessSnapshot> {
    return { keys: await this.#processes.keys() };
  }

  processes(): Promise<readonly ProcessRow[]> {
    return this.#processes.all();
  }

  /**
   * Control channels die before the look that proves it: whoever shares a shell's user could have put something into it. Most of their shells are
   * shot before, with everything else, as ending them one by one takes its time.
   */
  async kill(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    const start = performance.now();
    const kept = { keys: new Set([...keep.keys, ...this.#ownKeys]) };
    const shot = await this.#processes.shoot(kept);
    const seen = shot ?? (this.commands.hasChannels ? await this.#processes.all() : []);
    await this.commands.closeChannels();
    const receipt = await this.#processes.kill(kept, { deadlineMs: killMs, signal, seen });
    return { ...receipt, durationMs: performance.now() - start };
  }

  /** Ends every process. Where the files go with the last one, the sandbox's own init stays until the sandbox is removed. */
  async stop(signal: AbortSignal): Promise<void> {
    if (this.#isStopped) return;
    const keys = this.#rootOutlivesInit ? new Set<string>() : this.#ownKeys;
    await this.#processes.kill({ keys }, { deadlineMs: killMs, signal });
    await this.release();
  }

  /** Ends the servers and forwarders of the sandbox's network and lets go of its processes. Idempotent. */
  async release(): Promise<void> {
    this.#isStopped = true;
    this.#processes.close();
    await this.network?.close();
  }

  /** Ends every program of the host that still carries a command; after the sandbox's processes are dead. Idempotent. */
  abandonCommands(): void {
    this.commands.abandon();
  }
}
