/**
 * `node-llama-cpp`, which serves GGUF files, for tests and proofs: an optional peer of Slipway, so it is installed into a folder of the cache and
 * nothing of the repository changes. `tests/support/cached-llama.js` makes programs find it there.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { complaint, run } from './programs.js';
import { SetupProblem } from './step.js';

const version = '3.21.1';
const installMs = 180_000;

/** The folder with the package's `node_modules`. It is complete when it exists. */
export function llamaDir() {
  return join(cacheDir(), `node-llama-cpp-${version}-${process.platform}-${process.arch}`);
}

/** @returns {Promise<string>} What was done. */
export async function provideLlama() {
  if (existsSync(llamaDir())) return 'in the cache';
  const draft = join(cacheDir(), `.node-llama-cpp-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    await writeFile(join(draft, 'package.json'), '{ "private": true }\n');
    // Of the optional packages, which are one for each machine and GPU, only ours; without the script that would build from source.
    const names = ['node-llama-cpp', `@node-llama-cpp/${binaries()}`];
    const pinned = names.map((name) => `${name}@${version}`);
    const options = ['--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
    const result = await run('npm', ['install', ...options, '--prefix', draft, ...pinned], {
      timeoutMs: installMs,
    });
    if (result.code !== 0) throw new SetupProblem(`npm failed:\n${complaint(result)}`);
    await rm(llamaDir(), { recursive: true, force: true });
    await rename(draft, llamaDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `node-llama-cpp ${version} installed`;
}

/** What the package calls this machine. */
function binaries() {
  const { platform, arch } = process;
  if (platform !== 'darwin') return `${platform === 'win32' ? 'win' : platform}-${arch}`;
  return arch === 'arm64' ? 'mac-arm64-metal' : `mac-${arch}`;
}
