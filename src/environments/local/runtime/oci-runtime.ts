import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import type { LoopTurns } from '../../../core/loop-turns.ts';
import { isLostBeforeStart } from '../../shared/lost-process.ts';
import { hostSearchPath, runHostCommand, type HostCommandResult } from '../host-command.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { ociConfig, ociProcess, type SandboxProcess } from './oci-config.ts';
import { mountEnvironment, overlayOptions, volatileOption } from './overlay.ts';
import { ProcessDocument } from './process-document.ts';
import {
  streamsOf,
  type SandboxCommand,
  type SandboxPlan,
  type SandboxRuntime,
} from './runtime.ts';

/**
 * Mounts the root and becomes the runtime, in one process. Its output is the init's output. A runtime that outlives us names the
 * sandbox's folder on its command line, by which the cleaning up finds it.
 */
const startScript =
  '[ -z "$1" ] || mount -t overlay -o "$1" overlay "$2" || exit 90; log=$3; shift 3; exec "$@" >>"$log" 2>&1 </dev/null';
const mountFailed = 90;

const pidFileMs = 3_000;

export interface OciRuntimeOptions {
  readonly name: 'runc' | 'crun';
  readonly program: string;
  /** Words before the program, for machines where it needs a prepared mount namespace. */
  readonly prefix: readonly string[];
  readonly turns: LoopTurns;
}

/** runc or crun, driven directly. */
export class OciRuntime implements SandboxRuntime {
  readonly name: 'runc' | 'crun';
  readonly isolation = 'strict';
  readonly abilities;
  readonly #argv: readonly string[];
  readonly #turns: LoopTurns;

  constructor(options: OciRuntimeOptions) {
    this.name = options.name;
    this.abilities = {
      cgroups: true,
      network: true,
      pidNamespace: true,
      ownRoot: true,
      tracer: false,
      users: true,
      layers: true,
      diskQuota: true,
      rootOutlivesInit: true,
      givesPipes: options.name === 'runc',
      hasUserNamespace: false,
    };
    this.#argv = [...options.prefix, options.program];
    this.#turns = options.turns;
  }

  async start({ folder, image, sandbox }: SandboxPlan, signal: AbortSignal): Promise<number> {
    writeFileSync(folder.config, JSON.stringify(ociConfig(sandbox)), { mode: 0o600 });
    mkdirSync(folder.runtimeRoot, { recursive: true, mode: 0o700 });
    const launch = (overlay: string): Promise<HostCommandResult> =>
      this.#runtime(folder, signal, {
        file: 'sh',
        before: ['-c', startScript, 'slipway', overlay, folder.rootfs, folder.initLog],
        after: [
          ...['run', '--detach', '--bundle', folder.dir],
          ...['--pid-file', folder.initPid, folder.name],
        ],
        cwd: image.layersDir,
      });
    let result = await launch(overlayOptions(folder, image, volatileOption()));
    if (isInitLost(folder, result)) {
      await this.#runtime(folder, signal, {
        before: [],
        after: ['delete', '--force', folder.name],
      });
      result = await launch('');
    }
    if (result.exitCode !== 0) throw startFailed(folder, result);
    return Number(readFileSync(folder.initPid, 'utf8'));
  }

  /** Runs the runtime, or a program that becomes it: `before`, the runtime's own words, `after`. */
  async #runtime(
    folder: SandboxFolder,
    signal: AbortSignal,
    words: {
      readonly file?: string;
      readonly before: readonly string[];
      readonly after: readonly string[];
      readonly cwd?: string;
    },
  ): Promise<HostCommandResult> {
    const own = [...this.#argv, '--root', folder.runtimeRoot, '--log', folder.runtimeLog];
    const all = [
      ...(words.file === undefined ? [] : [words.file]),
      ...words.before,
      ...own,
      ...words.after,
    ];
    const [file = '', ...args] = all;
    const environment = { PATH: hostSearchPath(), ...mountEnvironment };
    const cwd = words.cwd === undefined ? {} : { cwd: words.cwd };
    const turns = this.#turns;
    return await runHostCommand({ file, args, environment, turns, ...cwd }, signal);
  }

  command(
    folder: SandboxFolder,
    sandboxProcess: SandboxProcess,
    options: { readonly hasInput: boolean },
  ): SandboxCommand {
    using document = new ProcessDocument(folder.dir, ociProcess(sandboxProcess));
    const pidFile = path.join(folder.dir, `command-${randomUUID()}.pid`);
    const words = [
      ...this.#argv,
      ...['--root', folder.runtimeRoot, '--log', folder.runtimeLog, 'exec'],
      ...[
        '--process',
        '/proc/self/fd/4',
        '--preserve-fds',
        '1',
        '--pid-file',
        pidFile,
        folder.name,
      ],
    ];
    const [file = '', ...args] = words;
    const child = spawn(file, args, {
      stdio: [options.hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', document.fd],
      env: { PATH: hostSearchPath() },
      detached: true,
    });
    let pid: number | null = null;
    let hasEnded = false;
    child.once('error', () => {
      hasEnded = true;
    });
    child.once('exit', () => {
      pid ??= readPid(pidFile);
      hasEnded = true;
      void rm(pidFile, { force: true });
    });
    return {
      ...streamsOf(child),
      starter: () => {
        pid ??= readPid(pidFile);
        return pid === null && !hasEnded ? (child.pid ?? null) : null;
      },
      hostPid: async () => {
        const until = performance.now() + pidFileMs;
        while (pid === null && performance.now() < until) {
          pid = readPid(pidFile);
          if (pid !== null || hasEnded) break;
          await delay(2);
        }
        return pid;
      },
    };
  }
}

function readPid(file: string): number | null {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

function isInitLost(folder: SandboxFolder, result: HostCommandResult): boolean {
  if (result.exitCode === 0 || result.exitCode === mountFailed) return false;
  return isLostBeforeStart(`${tail(folder.initLog)}\n${tail(folder.runtimeLog)}`);
}

function startFailed(
  folder: SandboxFolder,
  result: { readonly exitCode: number | null; readonly stderr: string },
): RolloutError {
  const detail = [result.stderr, tail(folder.runtimeLog), tail(folder.initLog)]
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n');
  const what =
    result.exitCode === mountFailed ? 'the root could not be mounted' : 'the runtime failed';
  return new RolloutError(
    'ENVIRONMENT_START_FAILED',
    `${what}: ${detail.split('\n').at(-1) ?? ''}`,
    {
      phase: 'environment',
      detail,
      remedy: 'Run `slipway task check` on the task and look at the detail of this error.',
    },
  );
}

function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').slice(-4096);
  } catch {
    return '';
  }
}
