/** A digest of the user's own code, so that half of an evaluation is not run with another version of it than the other half. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { isFields, type Fields } from '../../config/fields.ts';
import type { EvalConfig } from '../../config/eval/read-eval-config.ts';
import { readCodeReference } from '../../wire/runner/code-reference.ts';

const skipped =
  /^(?:node_modules|\.git|\.venv|venv|__pycache__|\.slipway|dist|build|.*\.egg-info|.*\.lock|package-lock\.json)$/;
const sources = /\.(?:[cm]?[jt]sx?|py|toml|json)$/;
const maxFiles = 2_000;
const maxBytes = 64 * 2 ** 20;

/** Of the folders of the modules that the backends' tables name. A very large folder counts with the names and sizes of what lies beyond the bounds. */
export async function sourceDigest(config: EvalConfig): Promise<string> {
  const hash = createHash('sha256');
  const budget = { files: maxFiles, bytes: maxBytes };
  // What the configuration says counts by itself, as far as it decides a result.
  const besides = new Set([config.outputDir, config.file]);
  for (const dir of [...new Set(moduleFolders(config))].sort())
    await addFolder(dir, { root: dir, besides, hash, budget });
  return hash.digest('hex');
}

function moduleFolders({ serveDocument, baseDir }: EvalConfig): readonly string[] {
  const backend = fieldsOf(serveDocument['backend']);
  const modules = ['local', 'harbor'].flatMap((kind) => {
    const table = fieldsOf(backend[kind]);
    return [table['workflow'], table['grader']];
  });
  const folders = modules.flatMap((name) => {
    const reference = typeof name === 'string' ? readCodeReference(name) : null;
    if (reference === null) return [];
    // Modules are looked for beside the configuration, too.
    return [reference.file === null ? baseDir : dirname(resolve(baseDir, reference.file))];
  });
  const paths = fieldsOf(serveDocument['python'])['path'];
  const python = Array.isArray(paths) ? paths.filter((one) => typeof one === 'string') : [];
  const code = fieldsOf(backend['harbor'])['code_dir'];
  const brought = typeof code === 'string' ? [code] : [];
  return [...folders, ...[...python, ...brought].map((one) => resolve(baseDir, one))];
}

interface Digesting {
  readonly root: string;
  /** Files and folders that are left out; absolute. */
  readonly besides: ReadonlySet<string>;
  readonly hash: ReturnType<typeof createHash>;
  readonly budget: { files: number; bytes: number };
}

async function addFolder(dir: string, digesting: Digesting): Promise<void> {
  const { root, besides, hash, budget } = digesting;
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(dir, entry.name);
    if (skipped.test(entry.name) || besides.has(path)) continue;
    if (entry.isDirectory()) await addFolder(path, digesting);
    else if (entry.isFile() && sources.test(entry.name) && budget.files > 0) {
      const { size } = await stat(path);
      budget.files -= 1;
      hash.update(`${relative(root, path)}\0${size}\0`);
      if (size > budget.bytes) continue;
      budget.bytes -= size;
      hash.update(await readFile(path));
    }
  }
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}
