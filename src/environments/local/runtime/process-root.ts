/**
 * What a sandbox of plain processes sees of the host besides its own copy of the image: /proc and a few devices. Root could change the
 * machine by the files of /sys and /proc/sys, so it gets empty folders in their place.
 */
import { existsSync } from 'node:fs';
import { chmod, lstat, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Transfers } from '../files/transfers.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';
import type { FileMount } from './oci-mounts.ts';

const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx'] as const;
const links = {
  fd: '/proc/self/fd',
  stdin: '/proc/self/fd/0',
  stdout: '/proc/self/fd/1',
  stderr: '/proc/self/fd/2',
} as const;

/** Places of the host that proot shows under the same name inside. */
export function hostBindings(
  folder: Pick<SandboxFolder, 'work'>,
  options: { readonly isRoot: boolean },
): readonly string[] {
  const places = [
    '/proc',
    ...(options.isRoot ? [] : ['/sys']),
    ...devices.map((name) => `/dev/${name}`),
    '/dev/pts',
  ];
  const hidden = options.isRoot
    ? ['-b', `${folder.work}:/proc/sys`, '-b', '/dev/null:/proc/sysrq-trigger']
    : [];
  return [
    ...places.filter((place) => existsSync(place)).flatMap((place) => ['-b', place]),
    ...hidden,
  ];
}

/** Makes the places that are shown, and brings our files in. Nothing runs in the root yet. */
export async function dressRoot(
  folder: SandboxFolder,
  files: readonly FileMount[],
  signal: AbortSignal,
): Promise<void> {
  const dev = path.join(folder.rootfs, 'dev');
  await rm(dev, { recursive: true, force: true });
  for (const name of ['proc', 'sys', 'dev', 'etc']) await plainFolder(folder.rootfs, name);
  for (const name of ['pts', 'shm']) await plainFolder(dev, name);
  await chmod(path.join(dev, 'shm'), 0o1777);
  for (const name of devices) await writeFile(path.join(dev, name), '');
  for (const [name, target] of Object.entries(links)) await symlink(target, path.join(dev, name));
  const transfers = new Transfers(() => folder.rootfs, { ownsAsRoot: process.getuid?.() === 0 });
  for (const { from, to } of files) await transfers.uploadFile(from, to, signal);
}

/** A link of the image in its place would lead to the host. */
async function plainFolder(root: string, name: string): Promise<void> {
  const dir = path.join(root, name);
  const stats = await lstat(dir).catch(() => null);
  if (stats?.isDirectory() === true) return;
  await rm(dir, { force: true });
  await mkdir(dir, { mode: 0o755 });
}
