/**
 * A controller that is not ours, for the tests: the Python SDK `osmosis-ai` with what its HTTP driver, callback store and listener stand on, and a Python
 * new enough for it, as the root of a container. Both are put into the cache. `tests/support/osmosis-peer.ts` starts them.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { debianMirrors } from './apt.js';
import { cacheDir } from './cache-dir.js';
import { complaint, run } from './programs.js';
import { findPython, installPackages } from './python.js';
import { SetupProblem } from './step.js';
import { provideSystemPackages } from './system-packages.js';

/** The newest release in which controllers are called back; the later ones poll. */
export const osmosisVersion = '0.3.2';
export const osmosisDigest = '58136143eaf0f1d41916d30484ff915e48f2c31b26a8f8aa2fbb698ac2bc0dee';

/** Another file for each machine, or free to change its digest: by version. */
const beneath = [
  ...[
    'annotated-doc==0.0.7',
    'annotated-types==0.8.0',
    'anyio==4.16.0',
    'certifi==2026.10.19.post1',
  ],
  ...['click==8.5.1', 'fastapi==0.165.0', 'h11==0.16.0', 'httpcore==1.0.9', 'httpx==0.28.1'],
  ...['idna==3.20', 'importlib-metadata==10.2.0', 'opentelemetry-api==1.45.2', 'pydantic==2.14.4'],
  ...['pydantic-core==2.50.5', 'starlette==1.10.0', 'typing-extensions==4.16.0'],
  ...['typing-inspection==0.4.5', 'uvicorn==0.54.0', 'zipp==4.1.2'],
];

/** Debian 13 has Python 3.13. */
const suite = 'trixie';
const edition = 1;
const epochSeconds = 1_700_000_000;
const makeMs = 8 * 60_000;
const smallestRootBytes = 40_000_000;

/** Tag of the container image; the archive is imported under it where it is missing. */
export const pythonImage = `slipway-python:3.13-${suite}.${edition}`;
/** Pulled instead where the archive cannot be made. */
export const publicPythonImage = 'python:3.13-slim-bookworm';

/** Root of a container with Python 3.13, as a tar file. */
export function pythonRootArchive() {
  return join(cacheDir(), `python-3.13-${suite}.${edition}.tar`);
}

/** Folder of packages to put on Python's path. It is complete when it exists. */
export function osmosisPeerDir() {
  return join(cacheDir(), `osmosis-ai-${osmosisVersion}-cp313-${process.arch}`);
}

/** @returns {Promise<string>} What was done. */
export async function provideOsmosisPeer() {
  const [packages, python] = await Promise.all([
    existsSync(osmosisPeerDir()) ? 'in the cache' : providePackages(),
    existsSync(pythonRootArchive()) ? 'in the cache' : providePython(),
  ]);
  return packages === python ? packages : `packages ${packages}, Python ${python}`;
}

async function providePackages() {
  const python = await findPython('the controller that the tests are driven by');
  const draft = join(cacheDir(), `.osmosis-ai-${process.pid}`);
  const machines = /** @type {Record<string, string>} */ ({ x64: 'x86_64', arm64: 'aarch64' });
  const platform = `manylinux2014_${machines[process.arch] ?? process.arch}`;
  // For the Python in the container, not for the one that runs pip.
  const options = [
    ...['--python-version', '3.13', '--implementation', 'cp', '--abi', 'cp313', '--abi', 'abi3'],
    ...['--platform', platform, '--ignore-requires-python'],
  ];
  try {
    await mkdir(draft, { recursive: true });
    const list = join(draft, 'pinned.txt');
    await writeFile(list, `osmosis-ai==${osmosisVersion} --hash=sha256:${osmosisDigest}\n`);
    await installPackages(python, draft, [...options, '--require-hashes', '-r', list]);
    await installPackages(python, draft, [...options, ...beneath]);
    await rm(osmosisPeerDir(), { recursive: true, force: true });
    await rename(draft, osmosisPeerDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `osmosis-ai ${osmosisVersion} installed`;
}

async function providePython() {
  const present = await run('docker', ['image', 'inspect', publicPythonImage]);
  if (present.code === 0) return 'in the cache';
  const problem = await makeAlone();
  if (problem === null) return 'made from packages';
  const pulled = await run('docker', ['pull', publicPythonImage], { timeoutMs: makeMs });
  if (pulled.code === 0) return `${publicPythonImage} from a registry`;
  throw new SetupProblem(`Making a root with Python 3.13 failed:\n${problem}`);
}

/** The archive itself, also where a container image would do. @returns {Promise<string>} What was done. */
export async function providePythonRoot() {
  if (existsSync(pythonRootArchive())) return 'in the cache';
  const problem = await makeAlone();
  if (problem !== null)
    throw new SetupProblem(`Making a root with Python 3.13 failed:\n${problem}`);
  return 'made from packages';
}

/** In a second process under a lock: whoever comes second finds it made. @returns {Promise<string | null>} What went wrong. */
async function makeAlone() {
  try {
    await provideSystemPackages(['base-image']);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  await mkdir(cacheDir(), { recursive: true });
  const self = fileURLToPath(import.meta.url);
  const lock = join(cacheDir(), '.python-root.lock');
  const made = await run('flock', ['--timeout', '600', lock, process.execPath, self, '--make'], {
    timeoutMs: makeMs + 600_000,
  });
  return made.code === 0 ? null : complaint(made);
}

async function makeRoot() {
  if (existsSync(pythonRootArchive())) return;
  const draft = `${pythonRootArchive()}.partial`;
  let problem = '';
  for (const mirror of [...(await debianMirrors()).map((uri) => [uri]), []]) {
    const made = await run('mmdebstrap', [...rootOptions(), suite, draft, ...mirror], {
      env: { SOURCE_DATE_EPOCH: `${epochSeconds}` },
      timeoutMs: makeMs,
    });
    if (made.code === 0 && (await stat(draft)).size >= smallestRootBytes) {
      await rename(draft, pythonRootArchive());
      return;
    }
    problem ||= made.code === 0 ? 'it made an empty root' : complaint(made);
  }
  await rm(draft, { force: true });
  throw new Error(`mmdebstrap: ${problem}`);
}

function rootOptions() {
  const excluded = ['doc', 'info', 'lintian', 'locale', 'man'].map(
    (folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`,
  );
  return [
    // Unpacked only: Python needs no script of its packages to have run.
    ...['--quiet', '--variant=extract', '--include=base-files,python3', '--format=tar'],
    ...['--skip=output/dev', '--aptopt=Acquire::Languages "none"', ...excluded],
    '--aptopt=APT::Install-Recommends "false"',
  ];
}

/** What the tests were driven by, for the record: `osmosis-ai 0.3.2`. */
export async function osmosisPeerRecord() {
  const metadata = join(osmosisPeerDir(), `osmosis_ai-${osmosisVersion}.dist-info`, 'METADATA');
  const version = /^Version: (\S+)/m.exec(await readFile(metadata, 'utf8'))?.[1] ?? 'unknown';
  return `osmosis-ai ${version} (sha256:${osmosisDigest.slice(0, 12)}…)`;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === '--make') {
  try {
    await makeRoot();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
