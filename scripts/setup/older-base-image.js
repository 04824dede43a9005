/** Makes the environments forget a stand-in of an older edition, with all that was built on it: they load and build anew when asked. */
import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  archivePrefix,
  baseImage,
  baseImageArchive,
  imageArchivesDir,
} from './base-image-archive.js';
import { cacheDir } from './cache-dir.js';
import { isDockerAnswering } from './docker-socket.js';
import { run } from './programs.js';

const commandMs = 60_000;

/** Called under the lock of the archives, when the new one is in its place. */
export async function forgetOlderBaseImage() {
  const older = (await readdir(imageArchivesDir())).filter(
    (name) =>
      name.startsWith(`${archivePrefix}.`) &&
      name.endsWith('.tar') &&
      name !== basename(baseImageArchive()),
  );
  if (older.length === 0) return;
  for (const name of older) await rm(join(imageArchivesDir(), name), { force: true });
  await rm(join(cacheDir(), 'images', 'tags'), { recursive: true, force: true });
  await forgetInBuildah();
  if (await isDockerAnswering()) await forgetInDocker();
}

async function forgetInBuildah() {
  const dir = join(cacheDir(), 'buildah');
  const storage = ['--root', join(dir, 'storage'), '--runroot', join(dir, 'run')];
  const command = ['buildah', ...storage, 'rmi', '--force', baseImage];
  const isRoot = process.getuid?.() === 0;
  // Buildah mounts its storage onto itself as root; see the local environment.
  const [file = '', ...args] = isRoot ? ['unshare', '--mount', ...command] : command;
  await run(file, args, { timeoutMs: commandMs }); // it may not be there
}

async function forgetInDocker() {
  const listed = await run(
    'docker',
    ['image', 'ls', '--format', '{{.Repository}}:{{.Tag}}', 'slipway-build'],
    { timeoutMs: commandMs },
  );
  const built = listed.code === 0 ? listed.stdout.split('\n').filter((line) => line !== '') : [];
  await run('docker', ['rmi', '--force', baseImage, ...built], { timeoutMs: commandMs });
}
