/**
 * Harbor itself, for tests of agents that stand on it: the package `harbor` with what its agents' base classes import, for the Python 3.13 of
 * `osmosis-peer.js`, and that Python unpacked, so that it runs on this machine's own files. Both are put into the cache by
 * `npm run setup -- tests`.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { providePythonRoot, pythonRootArchive } from './osmosis-peer.js';
import { complaint, run } from './programs.js';
import { findPython, installPackages } from './python.js';
import { SetupProblem } from './step.js';

export const harborVersion = '0.22.0';
export const harborDigest = '4c4c6571b3d160ed0cb45b82918136751fb08e7b8596412723ac00dde12eeabb';

/** Another file for each machine, or free to change its digest: by version. */
const beneath = [
  ...['annotated-types==0.8.0', 'jinja2==3.1.6', 'markupsafe==3.0.4', 'pydantic==2.14.4'],
  ...['pydantic-core==2.50.5', 'shortuuid==1.0.13', 'toml==0.10.2', 'typing-extensions==4.16.0'],
  'typing-inspection==0.4.5',
];
const unpackMs = 120_000;

/** Folder of packages to put on Python's path. It is complete when it exists. */
export function harborPeerDir() {
  return join(cacheDir(), `harbor-${harborVersion}-cp313-${process.arch}`);
}

/** A program that is Python 3.13, on the files of this machine. It exists when its root is complete. */
export function harborPython() {
  return join(cacheDir(), `python-3.13-${process.arch}`, 'python3');
}

/** @returns {Promise<string>} What was done. */
export async function provideHarborPeer() {
  const [packages, python] = await Promise.all([
    existsSync(harborPeerDir()) ? 'in the cache' : providePackages(),
    existsSync(harborPython()) ? 'in the cache' : unpackPython(),
  ]);
  return packages === python ? packages : `packages ${packages}, Python ${python}`;
}

async function providePackages() {
  const python = await findPython('the agents of the tests that stand on Harbor');
  const draft = join(cacheDir(), `.harbor-${process.pid}`);
  const machines = /** @type {Record<string, string>} */ ({ x64: 'x86_64', arm64: 'aarch64' });
  const machine = machines[process.arch] ?? process.arch;
  // For the Python of the root, not for the one that runs pip.
  const options = [
    ...['--python-version', '3.13', '--implementation', 'cp', '--abi', 'cp313'],
    ...['--platform', `manylinux2014_${machine}`, '--ignore-requires-python'],
  ];
  try {
    await mkdir(draft, { recursive: true });
    const list = join(draft, 'pinned.txt');
    await writeFile(list, `harbor==${harborVersion} --hash=sha256:${harborDigest}\n`);
    await installPackages(python, draft, [...options, '--require-hashes', '-r', list]);
    await installPackages(python, draft, [...options, ...beneath]);
    await rm(harborPeerDir(), { recursive: true, force: true });
    await rename(draft, harborPeerDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `harbor ${harborVersion} installed`;
}

async function unpackPython() {
  await providePythonRoot();
  const target = join(harborPython(), '..');
  const draft = `${target}.${process.pid}`;
  try {
    await mkdir(join(draft, 'root'), { recursive: true });
    const wanted = ['./usr/bin', './usr/lib', './usr/lib64'];
    const options = ['-C', join(draft, 'root'), '--no-same-owner', '-xf', pythonRootArchive()];
    const unpacked = await run('tar', [...options, ...wanted], { timeoutMs: unpackMs });
    if (unpacked.code !== 0) throw new SetupProblem(`tar: ${complaint(unpacked)}`);
    await writeFile(join(draft, 'python3'), launcher(join(target, 'root')));
    await chmod(join(draft, 'python3'), 0o755);
    await rm(target, { recursive: true, force: true });
    await rename(draft, target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return 'unpacked';
}

/** The root's own loader runs its Python: its C library may be newer than the machine's. */
function launcher(/** @type {string} */ root) {
  return [
    '#!/bin/sh',
    `root='${root}'`,
    'set -- "$root"/usr/bin/python3.13 "$@"',
    'for loader in "$root"/usr/lib64/ld-linux-*.so.* "$root"/usr/lib/ld-linux-*.so.*; do',
    '  [ -e "$loader" ] || continue',
    '  export PYTHONHOME="$root/usr"',
    '  exec "$loader" --library-path "$(echo "$root"/usr/lib/*-linux-gnu)" "$@"',
    'done',
    'echo "no loader in $root" >&2',
    'exit 127',
    '',
  ].join('\n');
}

/** What the agents of the tests stood on, for the record: `harbor 0.22.0`. */
export async function harborPeerRecord() {
  const metadata = join(harborPeerDir(), `harbor-${harborVersion}.dist-info`, 'METADATA');
  const version = /^Version: (\S+)/m.exec(await readFile(metadata, 'utf8'))?.[1] ?? 'unknown';
  return `harbor ${version} (sha256:${harborDigest.slice(0, 12)}…)`;
}
