/**
 * Plain processes, for machines without root and without user namespaces, and only when the person allows it: no isolation. Each
 * command runs under a proot of its own, which shows it a private copy of the image as its root by rewriting the paths of its
 * system calls. Processes share the user (root too, with the calls and files left out that change the machine), the network, the process table and the limits of whoever runs Slipway; a hostile program
 * can leave. What they cannot do is hide: see `TracedProcesses`.
 *
 * A proot holds its command's descriptors and stays until the last process that it traces has ended, and those must not lose it before:
 * a command's end is therefore the end of its own process, never that of the proot.
 */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { closeSync, copyFileSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import { hostSearchPath } from '../host-command.ts';
import { untilReady } from '../network/user-network.ts';
import { childPids, processKey, readProcess } from '../processes/process-table.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { underCallFilter } from './call-filter.ts';
import { mergeLayers } from './merged-root.ts';
import type { SandboxProcess } from './oci-config.ts';
import { ProcessDocument } from './process-document.ts';
import { dressRoot, hostBindings } from './process-root.ts';
import {
  streamsOf,
  type SandboxCommand,
  type SandboxPlan,
  type SandboxRuntime,
} from './runtime.ts';
import { variablesScript } from './variables-script.ts';

const enterMs = 3_000;
const endPollMs = 50;

/** Variables come from descriptor 4, read line by line: proot would take its path for one of the image. */
const readVariables = `v=; while IFS= read -r l <&4; do v="$v$l
"; done; exec 4<&-; unset PROOT_LOADER; eval "$v"; unset v l;`;
const startScript = `${readVariables} mkdir -p "$1" && cd "$1" && shift && echo ready >&3 && exec 3>&- && exec "$@"`;
const commandScript = `${readVariables} cd "$1" || exit 126; shift; exec "$@"`;

export interface ProcessRuntimeOptions {
  /** proot's own loader as a file; see `processProbe`. */
  readonly loader: string;
  readonly isRoot: boolean;
}

export class ProcessRuntime implements SandboxRuntime {
  readonly name = 'process';
  readonly isolation = 'none';
  readonly abilities = {
    cgroups: false,
    network: false,
    pidNamespace: false,
    ownRoot: false,
    tracer: true,
    users: false,
    layers: false,
    diskQuota: false,
    rootOutlivesInit: true,
    givesPipes: false,
    hasUserNamespace: false,
  };
  readonly #options: ProcessRuntimeOptions;

  constructor(options: ProcessRuntimeOptions) {
    this.#options = options;
  }

  async start({ folder, image, sandbox }: SandboxPlan, signal: AbortSignal): Promise<number> {
    copyFileSync(this.#options.loader, folder.loader);
    await mergeLayers(image, folder.rootfs, signal);
    await dressRoot(folder, sandbox.files, signal);
    using document = new ProcessDocument(folder.dir, variablesScript(sandbox.init.env));
    const log = openSync(folder.initLog, 'a', 0o600);
    const child = this.#spawn(folder, {
      script: startScript,
      process: sandbox.init,
      stdio: ['ignore', log, log, 'pipe', document.fd],
    });
    closeSync(log);
    const ready = child.stdio[3] as Readable;
    try {
      const isReady = new Promise<void>((resolve) => {
        ready.once('data', () => resolve());
      });
      await untilReady(child, { signal, what: 'proot', isReady });
    } catch (error) {
      signal.throwIfAborted();
      throw startFailed(folder, error);
    } finally {
      ready.destroy();
    }
    child.unref();
    const [initPid] = childPids(child.pid ?? 0);
    if (initPid === undefined) throw startFailed(folder, null);
    writeFileSync(folder.initPid, String(initPid));
    return initPid;
  }

  command(
    folder: SandboxFolder,
    sandboxProcess: SandboxProcess,
    options: { readonly hasInput: boolean },
  ): SandboxCommand {
    using document = new ProcessDocument(folder.dir, variablesScript(sandboxProcess.env));
    const child = this.#spawn(folder, {
      script: commandScript,
      process: sandboxProcess,
      stdio: [options.hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', document.fd],
    });
    const hostPid = firstChild(child);
    return {
      ...streamsOf(child),
      hostPid: async () => {
        const pid = await hostPid;
        return hasNotBegun(child) ? null : pid;
      },
      ended: () => hostPid.then((pid) => (pid === null ? undefined : untilGone(pid))),
      release: () => undefined, // the proot ends by itself after the last process that it traces
    };
  }

  #spawn(
    folder: SandboxFolder,
    command: {
      readonly script: string;
      readonly process: SandboxProcess;
      readonly stdio: StdioOptions;
    },
  ): ChildProcess {
    const { cwd, args } = command.process;
    const [file = '', ...words] = underCallFilter([
      ...['proot', '-v', '-1'],
      // Shown as root to itself, since images are made for root: changes of owner succeed and change nothing.
      ...(this.#options.isRoot ? [] : ['-0']),
      ...['-r', folder.rootfs, ...hostBindings(folder, this.#options), '-w', '/'],
      ...['/bin/sh', '-c', command.script, 'slipway', cwd, ...args],
    ]);
    return spawn(file, words, {
      cwd: '/',
      detached: true,
      stdio: command.stdio,
      env: { PATH: hostSearchPath(), PROOT_LOADER: folder.loader },
    });
  }
}

/** The command itself: the one child that a proot starts. null when there was none before the proot ended. */
async function firstChild(child: ChildProcess): Promise<number | null> {
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const until = performance.now() + enterMs;
  while (child.pid !== undefined && isRunning() && performance.now() < until) {
    const pid = childPids(child.pid)[0];
    if (pid !== undefined) return pid;
    await delay(2);
  }
  return null;
}

/** The shell that carries a command ends below 128 by itself only when it could not begin it, or has already told its status. */
function hasNotBegun(child: ChildProcess): boolean {
  return child.exitCode !== null && child.exitCode < 128;
}

async function untilGone(pid: number): Promise<void> {
  const first = readProcess(pid);
  for (;;) {
    const row = readProcess(pid);
    if (first === null || row === null || row.isEnded || processKey(row) !== processKey(first))
      return;
    await delay(endPollMs);
  }
}

function startFailed(folder: SandboxFolder, cause: unknown): RolloutError {
  let detail = '';
  try {
    detail = readFileSync(folder.initLog, 'utf8').slice(-4096).trim();
  } catch {
    // nothing was written yet
  }
  const said = detail.split('\n').at(-1) ?? '';
  return new RolloutError('ENVIRONMENT_START_FAILED', `proot does not start: ${said}`, {
    phase: 'environment',
    detail,
    cause,
    remedy: 'Look at the detail of this error; `--env docker` needs none of this.',
  });
}
