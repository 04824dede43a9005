/**
 * The weaker fallback where neither runc nor crun can be used, also for a user without any rights: a user namespace with mount, pid,
 * ipc, host name and network namespaces, made with util-linux. Root in it is this process's own user outside and nobody else exists, so
 * there are no other users; there is no system call filter and there are no limits.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import { runHostCommand, hostSearchPath } from '../host-command.ts';
import { untilReady } from '../network/user-network.ts';
import { childPids } from '../processes/process-table.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import { namespaceScript } from './namespace-script.ts';
import type { SandboxProcess } from './oci-config.ts';
import { mountEnvironment, overlayOptions, volatileOption } from './overlay.ts';
import { ProcessDocument } from './process-document.ts';
import {
  streamsOf,
  type SandboxCommand,
  type SandboxPlan,
  type SandboxRuntime,
} from './runtime.ts';
import { variablesScript } from './variables-script.ts';

const enterMs = 3_000;

export class NamespaceRuntime implements SandboxRuntime {
  readonly name = 'unshare';
  readonly isolation = 'weak';
  readonly abilities;
  readonly #isRoot: boolean;

  constructor(options: { readonly isRoot: boolean }) {
    this.#isRoot = options.isRoot;
    this.abilities = {
      cgroups: false,
      network: true,
      pidNamespace: true,
      ownRoot: true,
      tracer: false,
      users: false,
      layers: true,
      // Only root can mount a limited disk, and a root that is mounted outside outlives the sandbox's processes.
      diskQuota: options.isRoot,
      rootOutlivesInit: options.isRoot,
      givesPipes: false,
      hasUserNamespace: true,
    };
  }

  async start(plan: SandboxPlan, signal: AbortSignal): Promise<number> {
    const { folder, image, sandbox } = plan;
    const environment = { PATH: hostSearchPath(), ...mountEnvironment };
    // The layers' removals are marked for root or for users, and only the same side can read them.
    if (this.#isRoot) await mountRoot(plan, signal);
    const files = sandbox.files.flatMap((file) => [file.from, file.to]);
    const layers = sandbox.layers.flatMap((layer) => [layer.hostDir, layer.at]);
    using document = new ProcessDocument(folder.dir, variablesScript(sandbox.init.env));
    const log = openSync(folder.initLog, 'a', 0o600);
    const child = spawn(
      'unshare',
      [
        ...[
          '--user',
          '--map-root-user',
          '--mount',
          '--pid',
          '--fork',
          '--kill-child',
          '--ipc',
          '--uts',
        ],
        ...(sandbox.network === 'own' ? ['--net'] : []),
        ...['sh', '-c', namespaceScript, 'slipway', folder.rootfs],
        this.#isRoot ? '' : overlayOptions(folder, image, ['userxattr', ...volatileOption()]),
        ...[sandbox.hostname, sandbox.init.cwd, String(sandbox.files.length), ...files],
        ...[String(sandbox.layers.length), ...layers],
        ...sandbox.init.args,
      ],
      {
        cwd: image.layersDir,
        env: environment,
        detached: true,
        stdio: ['ignore', log, log, 'pipe', document.fd],
      },
    );
    closeSync(log);
    const ready = child.stdio[3] as Readable;
    try {
      await untilReady(child, {
        signal,
        what: 'unshare',
        isReady: new Promise<void>((resolve) => {
          ready.once('data', () => resolve());
        }),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw startFailed(folder, error);
    }
    ready.destroy();
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
    const initPid = readFileSync(folder.initPid, 'utf8').trim();
    // Variables come from descriptor 4: neither a command line nor the programs of the host see them.
    const script = '. /proc/self/fd/4; exec 4<&-; cd "$1" || exit 126; shift; exec "$@"';
    const child = spawn(
      'nsenter',
      [
        ...['--target', initPid, '--user', '--preserve-credentials', '--mount', '--pid', '--ipc'],
        ...['--uts', ...(sharesOurNetwork(initPid) ? [] : ['--net']), '--root', '--wd'],
        ...['/bin/sh', '-c', script, 'slipway', sandboxProcess.cwd, ...sandboxProcess.args],
      ],
      {
        stdio: [options.hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', document.fd],
        env: { PATH: hostSearchPath() },
        detached: true,
      },
    );
    let hasEnded = false;
    let pid: number | null = null;
    child.once('exit', () => {
      hasEnded = true;
    });
    child.once('error', () => {
      hasEnded = true;
    });
    return {
      ...streamsOf(child),
      // nsenter forks the command into the pid namespace and waits for it.
      hostPid: async () => {
        const until = performance.now() + enterMs;
        while (pid === null && !hasEnded && performance.now() < until) {
          pid = childPids(child.pid ?? 0)[0] ?? null;
          if (pid === null) await delay(2);
        }
        return pid;
      },
    };
  }
}

/** Nobody may enter the network of the host, not even from there, once in a user namespace that does not own it. */
function sharesOurNetwork(pid: string): boolean {
  return readlinkSync(`/proc/${pid}/ns/net`) === readlinkSync('/proc/self/ns/net');
}

async function mountRoot({ folder, image }: SandboxPlan, signal: AbortSignal): Promise<void> {
  const options = overlayOptions(folder, image, volatileOption());
  const result = await runHostCommand(
    {
      file: 'mount',
      args: ['-t', 'overlay', '-o', options, 'overlay', folder.rootfs],
      cwd: image.layersDir,
      environment: { PATH: hostSearchPath(), ...mountEnvironment },
    },
    signal,
  );
  if (result.exitCode !== 0) throw startFailed(folder, new Error(result.stderr.trim()));
}

function startFailed(folder: SandboxFolder, cause: unknown): RolloutError {
  let detail = '';
  try {
    detail = readFileSync(folder.initLog, 'utf8').slice(-4096).trim();
  } catch {
    // nothing was written yet
  }
  const last = detail.split('\n').at(-1) ?? '';
  return new RolloutError('ENVIRONMENT_START_FAILED', `the namespaces could not be made: ${last}`, {
    phase: 'environment',
    detail,
    cause,
    remedy: 'Let an administrator install runc and run as root, or use `--env docker`.',
  });
}
