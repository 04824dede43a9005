/** The OCI runtime document of a sandbox: what runc and crun read to build it. */
import type { EnvironmentLayer, ResourceLimits } from '../../environment.ts';
import type { ImageUser } from '../image-user.ts';
import { capabilities } from './capabilities.ts';
import {
  fileMount,
  layerMount,
  maskedPaths,
  readonlyPaths,
  systemMounts,
  type FileMount,
} from './oci-mounts.ts';
import { seccompProfile } from './seccomp-profile.ts';

/** One process in a sandbox: its init or a command. */
export interface SandboxProcess {
  readonly args: readonly string[];
  readonly cwd: string;
  /** `NAME=value`. */
  readonly env: readonly string[];
  readonly user: ImageUser;
}

export interface OciSandbox {
  readonly rootfs: string;
  readonly hostname: string;
  readonly init: SandboxProcess;
  readonly limits: ResourceLimits;
  /** Below the root of every cgroup hierarchy; null = leave cgroups alone. */
  readonly cgroupPath: string | null;
  /** `own`: an empty network namespace. `host`: that of the host. */
  readonly network: 'own' | 'host';
  readonly hasCgroupNamespace: boolean;
  readonly files: readonly FileMount[];
  readonly layers: readonly EnvironmentLayer[];
}

const cpuPeriodUs = 100_000;

export function ociConfig(sandbox: OciSandbox): object {
  const namespaces = [
    { type: 'pid' },
    { type: 'ipc' },
    { type: 'uts' },
    { type: 'mount' },
    ...(sandbox.network === 'own' ? [{ type: 'network' }] : []),
    ...(sandbox.hasCgroupNamespace ? [{ type: 'cgroup' }] : []),
  ];
  return {
    ociVersion: '1.0.2',
    process: ociProcess(sandbox.init),
    root: { path: sandbox.rootfs, readonly: false },
    hostname: sandbox.hostname,
    mounts: [
      ...systemMounts({ hasCgroupMount: sandbox.cgroupPath !== null }),
      ...sandbox.files.map(fileMount),
      ...sandbox.layers.map(layerMount),
    ],
    linux: {
      namespaces,
      ...(sandbox.cgroupPath === null ? {} : { cgroupsPath: sandbox.cgroupPath }),
      resources: { devices: deviceRules, ...limitResources(sandbox) },
      seccomp: seccompProfile(),
      maskedPaths,
      readonlyPaths,
      // Ports below 1024 and ping for everybody, as in Docker's network namespaces; needs a namespace of its own.
      ...(sandbox.network === 'own'
        ? {
            sysctl: {
              'net.ipv4.ip_unprivileged_port_start': '0',
              'net.ipv4.ping_group_range': '0 2147483647',
            },
          }
        : {}),
    },
  };
}

/** The `process` part, also what `exec --process` reads. */
export function ociProcess(process: SandboxProcess): object {
  const { user } = process;
  return {
    terminal: false,
    user: { uid: user.uid, gid: user.gid, additionalGids: user.groups },
    args: process.args,
    env: process.env,
    cwd: process.cwd,
    capabilities: {
      bounding: capabilities,
      // A user other than root starts without capabilities and regains them through setuid programs only.
      ...(user.uid === 0 ? { effective: capabilities, permitted: capabilities } : {}),
    },
    noNewPrivileges: false, // sudo and su of the image work, as in Docker
  };
}

/** Everything forbidden but making nodes; the runtime adds /dev/null and the like. */
const deviceRules = [
  { allow: false, access: 'rwm' },
  { allow: true, type: 'c', access: 'm' },
  { allow: true, type: 'b', access: 'm' },
];

function limitResources({ limits, cgroupPath }: OciSandbox): object {
  if (cgroupPath === null) return {};
  return {
    ...(limits.memoryMb === null ? {} : { memory: { limit: limits.memoryMb * 1024 * 1024 } }),
    ...(limits.cpus === null
      ? {}
      : { cpu: { quota: Math.round(limits.cpus * cpuPeriodUs), period: cpuPeriodUs } }),
    ...(limits.pids === null ? {} : { pids: { limit: limits.pids } }),
  };
}
