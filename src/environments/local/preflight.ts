/** Chooses the runtime and finds out what this machine can do. Says what is missing in words that can be pasted into a shell. */
import { randomUUID } from 'node:crypto';
import { closeSync, constants, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { LoopTurns } from '../../core/loop-turns.ts';
import { makeFolder } from '../../core/make-folder.ts';
import type { EnvironmentCapabilities } from '../environment.ts';
import type { CgroupAbilities, CgroupTree } from './cgroups/cgroup-tree.ts';
import { canLimitDisk } from './disk-quota.ts';
import { findProgram, runHostCommand, hostSearchPath } from './host-command.ts';
import type { Machine } from './machine.ts';
import type { CompiledLocalOptions, LocalRuntimeName } from './options.ts';
import { OciRuntime } from './runtime/oci-runtime.ts';
import { mountEnvironment } from './runtime/overlay.ts';
import { NamespaceRuntime } from './runtime/namespace-runtime.ts';
import { findProcessRuntime } from './runtime/process-probe.ts';
import type { SandboxRuntime } from './runtime/runtime.ts';

export interface PreflightRequest {
  readonly options: CompiledLocalOptions;
  readonly cgroups: CgroupTree | null;
  readonly canBuild: boolean;
  readonly turns: LoopTurns;
}

type Found = SandboxRuntime | { readonly missing: string };

const initPrograms = ['tini-static', 'catatonit', 'docker-init', 'tini'];

/** ENVIRONMENT_UNAVAILABLE when no runtime can be used, with every reason. */
export async function inspectMachine(
  request: PreflightRequest,
  signal: AbortSignal,
): Promise<Machine> {
  const runtime = await chooseRuntime(request, signal);
  const abilities = runtime.abilities.cgroups ? (request.cgroups?.probe() ?? null) : null;
  const userNetworkLack = runtime.abilities.network
    ? lackOfUserNetwork()
    : `the runtime ${runtime.name} has no network of its own`;
  return {
    runtime,
    cgroups: abilities === null ? null : request.cgroups,
    userNetworkLack,
    // An init that is not process 1 would collect nobody's orphans.
    initProgram: runtime.abilities.pidNamespace
      ? (initPrograms.map((name) => findProgram(name)).find((file) => file !== null) ?? null)
      : null,
    capabilities: capabilitiesOf(runtime, {
      abilities,
      hasUserNetwork: userNetworkLack === null,
      canBuild:
        request.canBuild && (runtime.name !== 'process' || (await canBuildRootless(signal))),
    }),
  };
}

function capabilitiesOf(
  runtime: SandboxRuntime,
  found: {
    readonly abilities: CgroupAbilities | null;
    readonly hasUserNetwork: boolean;
    readonly canBuild: boolean;
  },
): EnvironmentCapabilities {
  const hasForwarder =
    runtime.abilities.network &&
    ['socat', 'nsenter', 'setpriv'].every((name) => findProgram(name) !== null);
  return {
    compose: false,
    cpuLimit: found.abilities?.cpu ?? false,
    memoryLimit: found.abilities?.memory ?? false,
    pidsLimit: found.abilities?.pids ?? false,
    diskQuota: runtime.abilities.diskQuota && canLimitDisk(),
    gpus: false,
    tpus: false,
    users: runtime.abilities.users,
    noNetwork: runtime.abilities.network,
    allowlist: hasForwarder,
    dynamicNetworkPolicy: hasForwarder && found.hasUserNetwork,
    hostEndpoint: hasForwarder,
    build: found.canBuild,
    layers: runtime.abilities.layers,
    windows: false,
  };
}

/** buildah needs root or a user namespace, which are what a machine for plain processes lacks. */
async function canBuildRootless(signal: AbortSignal): Promise<boolean> {
  if (process.getuid?.() === 0) return true;
  if (findProgram('unshare') === null) return false;
  const args = ['--user', '--map-root-user', 'true'];
  return (await runHostCommand({ file: 'unshare', args }, signal)).exitCode === 0;
}

/** Why no user-mode network can be made here; null = one can. Opening the device is what the program itself does. */
export function lackOfUserNetwork(device = '/dev/net/tun'): string | null {
  if (findProgram('slirp4netns') === null)
    return 'slirp4netns is not installed (`sudo apt-get install slirp4netns`)';
  try {
    closeSync(openSync(device, constants.O_RDWR));
    return null;
  } catch (error) {
    return `${device} cannot be opened: ${messageOf(error)} (in a container, start it with \`--device ${device}\`; elsewhere \`sudo modprobe tun\`)`;
  }
}

async function chooseRuntime(
  request: PreflightRequest,
  signal: AbortSignal,
): Promise<SandboxRuntime> {
  const { runtime: wanted, isUnsandboxedAllowed } = request.options;
  const order: readonly Exclude<LocalRuntimeName, 'auto'>[] =
    wanted !== 'auto'
      ? [wanted]
      : ['runc', 'crun', 'unshare', ...(isUnsandboxedAllowed ? (['process'] as const) : [])];
  const reasons: string[] = [];
  for (const name of order) {
    const found = await find(name, request, signal);
    if (!('missing' in found)) return found;
    reasons.push(`${name}: ${found.missing}`);
  }
  throw noRuntime(reasons, isUnsandboxedAllowed);
}

/** A sandbox is asked for first; plain processes are named as the way without one. */
export function noRuntime(reasons: readonly string[], isUnsandboxedAllowed: boolean): RolloutError {
  const sandboxed =
    'Install a sandbox runtime (`sudo apt-get install runc`), or use `--env docker`.';
  const plain = isUnsandboxedAllowed
    ? 'Plain processes need `sudo apt-get install proot`.'
    : 'For tasks and agents that are trusted with this machine: `--allow-unsandboxed` runs plain processes without isolation.';
  return new RolloutError('ENVIRONMENT_UNAVAILABLE', `no sandbox runtime: ${reasons.join('; ')}`, {
    phase: 'environment',
    field: 'environment.type',
    remedy: `${sandboxed} ${plain}`,
  });
}

async function find(
  name: Exclude<LocalRuntimeName, 'auto'>,
  request: PreflightRequest,
  signal: AbortSignal,
): Promise<Found> {
  if (name === 'runc' || name === 'crun') return findOci(name, request, signal);
  if (name === 'unshare') return findNamespaces(request, signal);
  return findProcessRuntime(request.options.cacheDir, signal);
}

async function findOci(
  name: 'runc' | 'crun',
  { options, cgroups, turns }: PreflightRequest,
  signal: AbortSignal,
): Promise<Found> {
  const program = findProgram(name);
  if (program === null) return { missing: `not installed (\`sudo apt-get install ${name}\`)` };
  if (process.getuid?.() !== 0) return { missing: 'needs root (run with sudo)' };
  const refusal = await overlayRefusal(options.stateDir, signal);
  if (refusal !== null) return { missing: `no overlay on ${options.stateDir}: ${refusal}` };
  // crun wants one kind of cgroups only; on a hybrid host the second kind is hidden from it.
  const hidesSecond = name === 'crun' && cgroups?.version === 1;
  const prefix = hidesSecond
    ? ['unshare', '-m', 'sh', '-c', 'umount /sys/fs/cgroup/unified; exec "$@"', 'crun']
    : [];
  return new OciRuntime({ name, program, prefix, turns });
}

async function findNamespaces({ options }: PreflightRequest, signal: AbortSignal): Promise<Found> {
  const absent = ['unshare', 'nsenter', 'mount', 'chroot'].find(
    (name) => findProgram(name) === null,
  );
  if (absent !== undefined)
    return { missing: `${absent} is not installed (util-linux, coreutils)` };
  const isRoot = process.getuid?.() === 0;
  const refusal = await overlayRefusal(
    options.stateDir,
    signal,
    isRoot ? [] : ['--user', '--map-root-user'],
  );
  if (refusal !== null)
    return {
      missing: isRoot
        ? `no overlay on ${options.stateDir}: ${refusal}`
        : `user namespaces are not allowed to you (${refusal}); an administrator can allow them with \`sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0\``,
    };
  return new NamespaceRuntime({ isRoot });
}

/** Mounts an overlay in a mount namespace that ends with the attempt; what the system says when it fails. */
async function overlayRefusal(
  stateDir: string,
  signal: AbortSignal,
  userNamespace: readonly string[] = [],
): Promise<string | null> {
  const dir = path.join(stateDir, `probe-${randomUUID()}`);
  const folders = ['lower', 'upper', 'work', 'root'].map((name) => path.join(dir, name));
  try {
    for (const folder of folders) await makeFolder(folder);
    const script = `cd "$1" && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work${userNamespace.length === 0 ? '' : ',userxattr'} overlay root`;
    const result = await runHostCommand(
      {
        file: 'unshare',
        args: [...userNamespace, '--mount', 'sh', '-c', script, 'probe', dir],
        environment: { PATH: hostSearchPath(), ...mountEnvironment },
      },
      signal,
    );
    return result.exitCode === 0 ? null : result.stderr.trim();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
