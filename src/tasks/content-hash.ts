import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import ignore, { type Ignore } from 'ignore';
import { boundary } from '../core/errors.ts';
import { errnoOf, isFile } from './file-presence.ts';
import { compareBytes, fileSha256, listTree } from './file-walk.ts';

const singleFiles = ['task.toml', 'instruction.md', 'README.md', 'trajectory.json'];
const folders = ['environment', 'tests', 'solution', 'steps'];

/** What is left out when the task has no `.gitignore` of its own. */
const defaultPatterns = ['__pycache__/', '*.pyc', '.DS_Store', '*.swp', '*.swo', '*~'];

/**
 * The identity of a task's content, `sha256:<hex>`: what locks and package digests record. It covers task.toml, instruction.md,
 * README.md, trajectory.json and every file under environment/, tests/, solution/ and steps/ that the task's `.gitignore` (else the
 * usual litter patterns) does not exclude. A link to a file counts as that file; links to folders and broken links do not count.
 * TASK_FILE_MISSING when a file cannot be read.
 */
export function contentHash(dir: string, signal: AbortSignal): Promise<string> {
  const at = { code: 'TASK_FILE_MISSING', phase: 'resolve', what: 'content hash' } as const;
  return boundary(at, async () => {
    const hash = createHash('sha256');
    for (const relative of await contentFiles(dir, signal))
      hash.update(`${relative}\0${await fileSha256(path.join(dir, relative), signal)}\n`);
    return `sha256:${hash.digest('hex')}`;
  });
}

/** Relative paths of the files that make up a task, in bytewise order. */
export async function contentFiles(dir: string, signal: AbortSignal): Promise<readonly string[]> {
  const candidates = [...singleFiles];
  for (const folder of folders)
    for (const { relative } of await listTree(path.join(dir, folder), signal))
      candidates.push(`${folder}/${relative}`);
  const ignored = await ignorePatterns(dir, signal);
  const files: string[] = [];
  for (const relative of candidates)
    if (!ignored.ignores(relative) && (await isFile(path.join(dir, relative))))
      files.push(relative);
  return files.sort(compareBytes);
}

async function ignorePatterns(dir: string, signal: AbortSignal): Promise<Ignore> {
  const matcher = ignore({ ignorecase: false });
  try {
    return matcher.add(await readFile(path.join(dir, '.gitignore'), { encoding: 'utf8', signal }));
  } catch (error) {
    signal.throwIfAborted();
    if (errnoOf(error) !== 'ENOENT') throw error;
    return matcher.add(defaultPatterns);
  }
}
