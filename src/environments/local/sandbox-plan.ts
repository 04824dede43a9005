/** From a spec and an image to what the runtime is told: the init, its variables, the files that are mounted, the limits. */
import { lstatSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { EnvironmentSpec } from '../environment.ts';
import { caAssignments, caFile } from '../shared/extra-ca.ts';
import type { StoredImage } from './images/image-store.ts';
import { lookUpUser, type AccountFiles, type ImageUser } from './image-user.ts';
import type { Machine } from './machine.ts';
import type { OciSandbox } from './runtime/oci-config.ts';
import type { FileMount } from './runtime/oci-mounts.ts';
import type { SandboxFolder } from './sandbox-folder.ts';

const defaultPath = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** `exec`, so that one process keeps the sandbox alive from its first moment on. */
const keepAlive = ['sh', '-c', 'exec sleep infinity'];
const initPath = '/dev/init';

export interface SandboxInput {
  readonly spec: EnvironmentSpec;
  readonly image: StoredImage;
  readonly folder: SandboxFolder;
  readonly network: 'own' | 'host';
  /** Variables that the network brings. */
  readonly networkVariables: readonly string[];
  readonly extraCaBundle: string | null;
}

/** Default cwd of commands. */
export function workdirOf(spec: EnvironmentSpec, image: StoredImage): string {
  return path.posix.resolve('/', spec.workdir ?? image.config.workdir);
}

/** Variables of the sandbox in order of precedence, later wins: image, certificates, network, task. */
export function sandboxVariables(
  input: Pick<SandboxInput, 'spec' | 'image' | 'networkVariables' | 'extraCaBundle'>,
): readonly string[] {
  return mergedVariables([
    defaultPath,
    `HOSTNAME=${hostnameOf(input.spec)}`,
    ...input.image.config.env,
    ...(input.extraCaBundle === null ? [] : caAssignments),
    ...input.networkVariables,
    ...Object.entries(input.spec.env).map(([name, value]) => `${name}=${value}`),
  ]);
}

/** The last assignment of each name, in order of first appearance. */
export function mergedVariables(assignments: readonly string[]): readonly string[] {
  const byName = new Map<string, string>();
  for (const assignment of assignments)
    byName.set(assignment.slice(0, Math.max(0, assignment.indexOf('='))), assignment);
  byName.delete('');
  return [...byName.values()];
}

export function withHome(variables: readonly string[], user: ImageUser): readonly string[] {
  return mergedVariables([`HOME=${user.home}`, ...variables]);
}

export function hostnameOf(spec: EnvironmentSpec): string {
  return spec.name;
}

export function ociSandbox(input: SandboxInput, machine: Machine): OciSandbox {
  const { spec, image, folder } = input;
  const user = lookUpUser(image.config.user, accountsOfImage(image));
  const command = [...image.config.entrypoint, ...keepAlive];
  return {
    rootfs: folder.rootfs,
    hostname: hostnameOf(spec),
    init: {
      args: machine.initProgram === null ? withShellInit(command) : [initPath, '--', ...command],
      cwd: workdirOf(spec, image),
      env: withHome(sandboxVariables(input), user),
      user,
    },
    limits: spec.limits,
    cgroupPath: machine.cgroups?.runtimePath(spec.name) ?? null,
    network: input.network,
    hasCgroupNamespace: machine.cgroups?.version === 2,
    layers: spec.layers,
    files: [
      ...(['hosts', 'hostname', 'resolv.conf'] as const).map((name): FileMount => ({
        from: path.join(folder.etc, name),
        to: `/etc/${name}`,
        isReadOnly: false,
      })),
      ...(machine.initProgram === null
        ? []
        : [{ from: machine.initProgram, to: initPath, isReadOnly: true }]),
      ...(input.extraCaBundle === null
        ? []
        : [{ from: folder.caFile, to: caFile, isReadOnly: true }]),
    ],
  };
}

/** A shell that waits for its child also collects the orphans that fall to it. */
function withShellInit(command: readonly string[]): readonly string[] {
  return ['sh', '-c', '"$@" & wait $!', 'init', ...command];
}

/** The accounts of an image that no sandbox runs yet: the highest layer that has the file decides. */
export function accountsOfImage(image: StoredImage): AccountFiles {
  return { passwd: fromLayers(image, 'etc/passwd'), group: fromLayers(image, 'etc/group') };
}

function fromLayers(image: StoredImage, name: string): string {
  for (const layer of image.layers)
    try {
      const file = path.join(image.layersDir, layer, name);
      const stats = lstatSync(file);
      return stats.isFile() ? readFileSync(file, 'utf8') : ''; // a whiteout says: removed
    } catch {
      continue;
    }
  return '';
}
