/**
 * The base image of the bundled tasks, `debian:bookworm-slim`. Where a registry answers, the environments pull it and nothing is
 * made. Elsewhere one stand-in is made from Debian packages, as a Docker archive in Slipway's cache, from which both environments
 * load it by its tag.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { debianMirrors } from './apt.js';
import { baseImage, baseImageArchive, imageArchivesDir } from './base-image-archive.js';
import { forgetOlderBaseImage } from './older-base-image.js';
import { complaint, findProgram, run } from './programs.js';
import { SetupProblem } from './step.js';
import { provideSystemPackages } from './system-packages.js';

const suite = 'bookworm';

/** Time stamp of every file in the image: two runs over the same packages give the same bytes. */
const epochSeconds = 1_700_000_000;
const registryAnswerMs = 6_000;
const makeMs = 8 * 60_000;
/** Less is no Debian: an interrupted maker may leave an empty file and answer 0. */
const smallestLayerBytes = 20_000_000;

/** Terminal agents run under tmux: with it in the image their trials need no network. */
const added = ['tmux'];

/** What the slim images of Debian leave out. */
const leftOut = ['doc', 'info', 'linda', 'lintian', 'locale', 'man'];

/**
 * @param {readonly ('local' | 'docker')[]} environments Those that will run tasks.
 * @returns {Promise<string>} What was done.
 */
export async function provideBaseImage(environments) {
  if (existsSync(baseImageArchive())) return `${baseImage} is in the cache`;
  const answers = await Promise.all(environments.map((environment) => isPullable[environment]()));
  if (answers.length > 0 && answers.every(Boolean)) return `${baseImage} comes from a registry`;
  await provideSystemPackages(['base-image']);
  await mkdir(imageArchivesDir(), { recursive: true });
  const made = await makeAlone();
  if (made.code !== 0) throw new SetupProblem(`Making ${baseImage} failed:\n${complaint(made)}`);
  return `${baseImage} ${made.stdout.trim()}`;
}

/** Makes the archive in a second process under a lock: whoever comes second finds it made. */
function makeAlone() {
  const lock = join(imageArchivesDir(), '.lock');
  const self = fileURLToPath(import.meta.url);
  return run('flock', ['--timeout', '600', lock, process.execPath, self, '--make'], {
    timeoutMs: makeMs + 600_000,
  });
}

/** Whether the environment's own way of pulling gets an answer from a registry within a few seconds. */
const isPullable = {
  async local() {
    if (!findProgram('buildah')) return false;
    const options = { timeoutMs: registryAnswerMs };
    return (await run('buildah', ['manifest', 'inspect', baseImage], options)).code === 0;
  },
  /** The daemon pulls by settings of its own, so only a pull tells. It gets its full time once the registry has answered. */
  docker() {
    return new Promise((resolve) => {
      let hasAnswered = false;
      const silence = setTimeout(() => resolve(false), registryAnswerMs);
      const pull = run('timeout', ['300', 'docker', 'pull', baseImage], {
        onOutput: (text) => {
          if (!/Pulling from/.test(text)) return;
          hasAnswered = true;
          clearTimeout(silence);
        },
      });
      void pull.then((result) => {
        clearTimeout(silence);
        resolve(hasAnswered && result.code === 0);
      });
    });
  },
};

/** Makes the archive unless it is there by now. Called under the lock. */
async function makeArchive() {
  if (existsSync(baseImageArchive())) return 'is in the cache';
  await removeLeftovers();
  const work = join(imageArchivesDir(), `.making-${process.pid}`);
  await mkdir(work);
  try {
    const layer = join(work, 'layer.tar');
    await makeLayer(layer);
    const layerDigest = await sha256(layer);
    const files = await writeDescription(work, layer, layerDigest);
    const packed = join(work, 'image.tar');
    const tar = await run('tar', [
      ...['--create', '--file', packed, '--directory', work, '--format=ustar'],
      ...['--owner=0', '--group=0', '--numeric-owner', '--mode=0644', `--mtime=@${epochSeconds}`],
      ...files,
    ]);
    if (tar.code !== 0) throw new Error(`tar: ${complaint(tar)}`);
    await rename(packed, baseImageArchive());
    await forgetOlderBaseImage();
    return `made from packages, ${Math.round((await stat(baseImageArchive())).size / 1e6)} MB`;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Folders of makers that were killed. Nobody else is making: we hold the lock. */
async function removeLeftovers() {
  for (const name of await readdir(imageArchivesDir())) {
    if (name.startsWith('.making-')) {
      await rm(join(imageArchivesDir(), name), { recursive: true, force: true });
    }
  }
}

/**
 * Makes the image's one layer from the packages of the machine's own mirror, or of the tool's default one.
 *
 * @param {string} file
 */
async function makeLayer(file) {
  const mirrors = (await debianMirrors()).map((mirror) => [mirror]);
  let problem = '';
  for (const mirror of [...mirrors, []]) {
    const made = await run('mmdebstrap', [...layerOptions(), suite, file, ...mirror], {
      env: { SOURCE_DATE_EPOCH: `${epochSeconds}` },
      timeoutMs: makeMs,
    });
    const isWhole = made.code === 0 && (await stat(file)).size >= smallestLayerBytes;
    if (isWhole) return;
    problem ||= made.code === 0 ? 'it ended well, but made an empty image' : complaint(made);
  }
  throw new Error(`mmdebstrap: ${problem}`);
}

function layerOptions() {
  const excluded = leftOut.map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`);
  return [
    ...[
      '--quiet',
      '--variant=apt',
      `--include=${added.join(',')}`,
      '--format=tar',
      '--skip=output/dev',
    ],
    ...['--aptopt=Acquire::Languages "none"', '--aptopt=APT::Install-Recommends "false"'],
    ...[...excluded, '--dpkgopt=path-include=/usr/share/doc/*/copyright'],
  ];
}

/**
 * Writes the image's configuration and the archive's manifest, and gives the layer its final name.
 *
 * @param {string} work
 * @param {string} layer
 * @param {string} layerDigest
 * @returns {Promise<string[]>} The archive's files, manifest first.
 */
async function writeDescription(work, layer, layerDigest) {
  const created = new Date(epochSeconds * 1000).toISOString();
  const config = JSON.stringify({
    architecture: imageArchitectures[arch()] ?? arch(),
    os: 'linux',
    created,
    config: {
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      Cmd: ['bash'],
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layerDigest}`] },
    history: [{ created, created_by: `mmdebstrap ${suite}`, comment: `stand-in for ${baseImage}` }],
  });
  const configName = `${createHash('sha256').update(config).digest('hex')}.json`;
  const layerName = `${layerDigest}.tar`;
  await rename(layer, join(work, layerName));
  await writeFile(join(work, configName), config);
  const manifest = [{ Config: configName, RepoTags: [baseImage], Layers: [layerName] }];
  await writeFile(join(work, 'manifest.json'), JSON.stringify(manifest));
  return ['manifest.json', configName, layerName];
}

/** Node's names of architectures → those of images. @type {Readonly<Record<string, string>>} */
const imageArchitectures = { x64: 'amd64', arm64: 'arm64', arm: 'arm', ppc64: 'ppc64le' };

/** @param {string} file @returns {Promise<string>} Hexadecimal. */
async function sha256(file) {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return hash.digest('hex');
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === '--make') {
  try {
    console.log(await makeArchive());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
