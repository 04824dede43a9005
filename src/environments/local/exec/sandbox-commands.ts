/** Commands, control channels and open processes of one running sandbox: who runs them, with which variables, and which are still open. */
import { closeSync, constants, readFileSync } from 'node:fs';
import { RolloutError } from '../../../core/errors.ts';
import type { LoopTurns } from '../../../core/loop-turns.ts';
import type {
  ControlChannel,
  EnvironmentSpec,
  ExecRequest,
  ExecResult,
  InteractiveProcess,
  ProcessRequest,
} from '../../environment.ts';
import { retryLost } from '../../shared/lost-process.ts';
import { ShellChannel } from '../../shared/shell-channel.ts';
import { SandboxRoot } from '../files/sandbox-root.ts';
import { lookUpUser, type AccountFiles, type ImageUser } from '../image-user.ts';
import type { StoredImage } from '../images/image-store.ts';
import type { SandboxProcess } from '../runtime/oci-config.ts';
import type { SandboxCommand, SandboxRuntime } from '../runtime/runtime.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { mergedVariables, sandboxVariables, withHome, workdirOf } from '../sandbox-plan.ts';
import { commandArguments, finishCommand, type Shells } from './exec.ts';
import { openCommand } from './interactive-command.ts';
import { runningShell } from './running-shell.ts';
import type { HostScan } from '../processes/host-scan.ts';

export interface SandboxCommandsOptions {
  readonly spec: EnvironmentSpec;
  readonly image: StoredImage;
  readonly folder: SandboxFolder;
  readonly runtime: SandboxRuntime;
  readonly scan: HostScan;
  readonly turns: LoopTurns;
  readonly extraCaBundle: string | null;
  /** The sandbox's root as the host sees it now. */
  readonly rootPath: () => string;
  readonly networkVariables: () => readonly string[];
  readonly isAlive: () => boolean;
}

type ExecUser = string | number | null | undefined;

export class SandboxCommands {
  readonly #options: SandboxCommandsOptions;
  readonly #channels = new Set<ControlChannel>();
  readonly #processes = new Set<InteractiveProcess>();
  readonly #open = new Set<SandboxCommand>();
  #shells: Shells | null = null;

  constructor(options: SandboxCommandsOptions) {
    this.#options = options;
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    const args = commandArguments(request.command, this.#findShells(), {
      hasPipes: this.#options.runtime.abilities.givesPipes,
    });
    const { isAlive, scan } = this.#options;
    return await retryLost(async () => {
      const running = await this.#start(
        { args, cwd: request.cwd, env: request.env, user: request.user },
        { hasInput: request.stdin !== undefined },
      );
      return finishCommand(running, request, { signal, isAlive, scan });
    });
  }

  async openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    options.signal.throwIfAborted();
    const running = await this.#start(
      { args: [this.#findShells().command], user: options.user },
      { hasInput: true },
    );
    const { folder, scan } = this.#options;
    const shell = runningShell(running, { name: folder.name, scan });
    const channel = new ShellChannel(shell, { defaultCwd: this.#workdir });
    this.#channels.add(channel);
    void shell.ended.then(() => this.#channels.delete(channel));
    return channel;
  }

  async openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    signal.throwIfAborted();
    const args = commandArguments(request.command, this.#findShells(), {
      hasPipes: this.#options.runtime.abilities.givesPipes,
      saysBegin: true,
    });
    const { isAlive, scan } = this.#options;
    const { cwd, env, user } = request;
    const opened = await retryLost(async () => {
      const running = await this.#start({ args, cwd, env, user }, { hasInput: true });
      return openCommand({ running, isAlive, scan }, request, signal);
    });
    this.#processes.add(opened);
    void opened.exited.then(() => this.#processes.delete(opened));
    return opened;
  }

  /** Whether control channels or processes are open. */
  get hasChannels(): boolean {
    return this.#channels.size + this.#processes.size > 0;
  }

  /** Ends control channels and open processes. */
  async closeChannels(): Promise<void> {
    await Promise.all([
      ...[...this.#channels].map((channel) => channel.close()),
      ...[...this.#processes].map((opened) => opened.kill()),
    ]);
  }

  /** Ends every program of the host that still carries a command. The commands themselves end with the sandbox. */
  abandon(): void {
    for (const running of this.#open) {
      running.release();
      for (const stream of running.child.stdio) stream?.destroy();
    }
  }

  async #start(
    wanted: {
      readonly args: readonly string[];
      readonly cwd?: string | null | undefined;
      readonly env?: Readonly<Record<string, string>> | undefined;
      readonly user?: ExecUser;
    },
    options: { readonly hasInput: boolean },
  ): Promise<SandboxCommand> {
    await this.#options.turns.next();
    const user = this.#user(wanted.user);
    const process: SandboxProcess = {
      args: wanted.args,
      cwd: wanted.cwd ?? this.#workdir,
      env: withHome(this.#variables(wanted.env ?? {}), user),
      user,
    };
    for (const text of [...process.args, ...process.env, process.cwd]) rejectNul(text);
    const running = this.#options.runtime.command(this.#options.folder, process, options);
    this.#open.add(running);
    running.child.once('close', () => this.#open.delete(running));
    return running;
  }

  #variables(own: Readonly<Record<string, string>>): readonly string[] {
    const { networkVariables, ...rest } = this.#options;
    return mergedVariables([
      ...sandboxVariables({ ...rest, networkVariables: networkVariables() }),
      ...Object.entries(own).map(([name, value]) => `${name}=${value}`),
    ]);
  }

  get #workdir(): string {
    return workdirOf(this.#options.spec, this.#options.image);
  }

  #user(wanted: ExecUser): ImageUser {
    const { runtime, image } = this.#options;
    const user = lookUpUser(wanted ?? image.config.user, this.#accounts());
    if (runtime.abilities.users || user.uid === 0) return user;
    if (wanted !== null && wanted !== undefined) throw onlyRoot(runtime.name);
    return { ...user, uid: 0, gid: 0, groups: [] };
  }

  /** Read anew each time: a task may add users while it is set up. */
  #accounts(): AccountFiles {
    const root = new SandboxRoot(this.#options.rootPath());
    return { passwd: readText(root, '/etc/passwd'), group: readText(root, '/etc/group') };
  }

  /** Found once, on the image's own PATH. */
  #findShells(): Shells {
    if (this.#shells !== null) return this.#shells;
    const root = new SandboxRoot(this.#options.rootPath());
    const search = this.#variables({}).find((one) => one.startsWith('PATH=')) ?? 'PATH=';
    const folders = search.slice('PATH='.length).split(':');
    const find = (name: string): string | null =>
      folders
        .filter((folder) => folder.startsWith('/'))
        .map((folder) => `${folder}/${name}`)
        .find((file) => exists(root, file)) ?? null;
    const sh = find('sh');
    const bash = find('bash');
    const command = bash ?? sh;
    if (command === null)
      throw new RolloutError('EXEC_FAILED', 'the image has neither bash nor sh', {
        phase: 'environment',
        retryable: false,
        remedy: 'Use an image with a shell.',
      });
    this.#shells = { command, waiting: sh ?? command };
    return this.#shells;
  }
}

function onlyRoot(runtime: string): RolloutError {
  return new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    `sandboxes by ${runtime} have no user but root`,
    {
      phase: 'environment',
      field: 'user',
      remedy: 'Run as root with runc installed, or use `--env docker`.',
    },
  );
}

const maxAccountBytes = 4 * 1024 * 1024;

function readText(root: SandboxRoot, file: string): string {
  try {
    using place = root.place(file);
    using entry = place.name === null ? null : place.parent.pin(place.name);
    if (entry?.stats.isFile() !== true || entry.stats.size > maxAccountBytes) return '';
    const fd = entry.reopen(constants.O_RDONLY);
    try {
      return readFileSync(fd, 'utf8');
    } finally {
      closeSync(fd);
    }
  } catch {
    return ''; // no such file: numeric users only
  }
}

function exists(root: SandboxRoot, file: string): boolean {
  try {
    using place = root.place(file);
    using entry = place.name === null ? null : place.parent.pin(place.name);
    return entry !== null;
  } catch {
    return false;
  }
}

function rejectNul(text: string): void {
  if (!text.includes('\0')) return;
  throw new RolloutError('EXEC_FAILED', 'a command or variable holds a NUL byte', {
    phase: 'environment',
    retryable: false,
    remedy: 'Upload binary content as a file.',
  });
}
