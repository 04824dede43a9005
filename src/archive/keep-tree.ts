/**
 * Brings a file or folder that a sandbox or a user's code wrote into the archive. Regular files only, contents only: links, devices, pipes and names
 * that hold a secret are left out and named. A folder above is never a link, because the archive makes all of them.
 */
import { lstat, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../core/errors.ts';
import { redactingCopy } from './redacting-copy.ts';
import { syncFolder } from '../store/sync-folder.ts';

export interface KeepProblem {
  readonly name: string;
  readonly problem: string;
}

/** Of a folder at once: files that are synced at the same time share the work of it. */
const atOnce = 8;

/** On disk when it resolves. `to` does not exist. Answers what could not be kept, by its name under `name`; a missing `from` is no problem and keeps nothing. */
export async function keepTree(
  { name, from, to }: { readonly name: string; readonly from: string; readonly to: string },
  spellings: readonly string[],
): Promise<readonly KeepProblem[]> {
  const keep = async (
    at: string,
    source: string,
    target: string,
  ): Promise<readonly KeepProblem[]> => {
    try {
      const entry = await lstat(source).catch(absent);
      if (entry === null)
        return source === from ? [] : [{ name: at, problem: 'it is gone, or its name is no text' }];
      // No reader could fetch it: in another system it is a way out of the folder.
      if (path.basename(source).includes('\\'))
        return [{ name: at, problem: 'its name holds a backslash' }];
      if (spellings.some((secret) => path.basename(source).includes(secret)))
        return [{ name: path.posix.dirname(at), problem: 'a name in it holds a secret' }];
      if (entry.isDirectory()) return await keepFolder(at, source, target);
      if (!entry.isFile())
        return [
          { name: at, problem: entry.isSymbolicLink() ? 'it is a link' : 'it is no regular file' },
        ];
      await redactingCopy(source, target, spellings);
      return [];
    } catch (error) {
      return [{ name: at, problem: messageOf(error) }];
    }
  };
  const keepFolder = async (
    at: string,
    source: string,
    target: string,
  ): Promise<readonly KeepProblem[]> => {
    await mkdir(target);
    const names = await readdir(source);
    const problems: KeepProblem[] = [];
    for (let next = 0; next < names.length; next += atOnce) {
      const some = names
        .slice(next, next + atOnce)
        .map((part) => keep(`${at}/${part}`, path.join(source, part), path.join(target, part)));
      problems.push(...(await Promise.all(some)).flat());
    }
    await syncFolder(target);
    return problems;
  };
  return await keep(name, from, to);
}

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
