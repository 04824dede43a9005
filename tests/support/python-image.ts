/**
 * An image for sandboxes that run users' code: the base image with a Python in it. It is made once, of what `npm run setup -- tests` put into the cache, as
 * an archive beside that of the base image, and found by its name from then on.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { baseImageArchive, imageArchivesDir } from '../../scripts/setup/base-image-archive.js';
import { harborPython } from '../../scripts/setup/harbor-peer.js';
import { publicPythonImage } from '../../scripts/setup/osmosis-peer.js';
import { whyNoRunc } from '../environments/local/local-bench.ts';

const run = promisify(execFile);
const reference = 'slipway-sandbox-python:3.13-1';
const archive = path.join(imageArchivesDir(), 'slipway-sandbox-python.3.13-1.tar');

/** Why sandboxes of this machine cannot run Python; null when they can. */
export function whyNoPythonImage(): string | null {
  if (!existsSync(harborPython())) return 'no Python for sandboxes (npm run setup -- tests)';
  return whyNoRunc();
}

/** Name of the image. Its `python3` is Python 3.13, and it has bash and perl. */
export async function providePythonImage(): Promise<string> {
  // Where there is none of the base image, a registry answers.
  if (!existsSync(baseImageArchive())) return publicPythonImage;
  if (!existsSync(archive)) await makeArchive();
  return reference;
}

interface ImageConfig {
  readonly architecture: string;
  readonly os: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly rootfs: { readonly type: string; readonly diff_ids: readonly string[] };
}

/** The libraries of this Python are not those of the base image: its own loader starts it. */
const launcher = `#!/bin/sh
export PYTHONHOME=/opt/python/usr
for loader in /opt/python/usr/lib64/ld-linux-*.so.* /opt/python/usr/lib/ld-linux-*.so.*; do
  [ -e "$loader" ] || continue
  exec "$loader" --library-path "$(echo /opt/python/usr/lib/*-linux-gnu)" /opt/python/usr/bin/python3.13 "$@"
done
exit 127
`;

/** It is complete as soon as it has its name: several may make it at once. */
async function makeArchive(): Promise<void> {
  const draft = await mkdtemp(path.join(imageArchivesDir(), '.python-'));
  try {
    const image = path.join(draft, 'image');
    await mkdir(image);
    await run('tar', ['-C', image, '-xf', baseImageArchive()]);
    const written = path.join(image, 'manifest.json');
    const [base] = await readJson<{ Config: string; Layers: string[] }[]>(written);
    const layer = path.join(image, 'python.tar');
    await packPython(path.join(draft, 'files'), layer);
    const { rootfs, ...config } = await readJson<ImageConfig>(path.join(image, base!.Config));
    const { architecture, os, config: settings } = config;
    const diffIds = [...rootfs.diff_ids, `sha256:${await sha256Of(layer)}`];
    const made = { architecture, os, config: settings, rootfs: { ...rootfs, diff_ids: diffIds } };
    await writeFile(path.join(image, 'config.json'), JSON.stringify(made));
    const layers = [...base!.Layers, 'python.tar'];
    const entry = { Config: 'config.json', RepoTags: [reference], Layers: layers };
    await writeFile(written, JSON.stringify([entry]));
    const finished = path.join(draft, 'finished.tar');
    await run('tar', ['-C', image, '-cf', finished, 'manifest.json', 'config.json', ...layers]);
    await rename(finished, archive);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function packPython(files: string, layer: string): Promise<void> {
  await mkdir(path.join(files, 'usr/local/bin'), { recursive: true });
  await mkdir(path.join(files, 'opt/python'), { recursive: true });
  const program = path.join(files, 'usr/local/bin/python3');
  await writeFile(program, launcher);
  await chmod(program, 0o755);
  const root = path.join(path.dirname(harborPython()), 'root/usr');
  await run('cp', ['-a', root, path.join(files, 'opt/python/usr')]);
  await run('tar', ['-C', files, '--owner=0', '--group=0', '-cf', layer, 'opt', 'usr']);
}

async function readJson<Document>(file: string): Promise<Document> {
  return JSON.parse(await readFile(file, 'utf8')) as Document;
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}
