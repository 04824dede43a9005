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

/** On disk when it resolves. `to` does not exist. Answers what could not be kept, by its name under `name`; a missing `from` is no problem and keeps nothing. */
export async function keepTree(
  { name, from, to }: { readonly name: string; readonly from: string; readonly to: string },
  spellings: readonly string[],
): Promise<readonly KeepProblem[]> {
  const problems: KeepProblem[] = [];
  const keep = async (at: string, source: string, target: string): Promise<void> => {
    try {
      const entry = await lstat(source).catch(absent);
      if (entry === null) {
        if (source !== from)
          problems.push({ name: at, problem: 'it is gone, or its name is no text' });
        return;
      }
      // No reader could fetch it: in another system it is a way out of the folder.
      if (path.basename(source).includes('\\'))
        problems.push({ name: at, problem: 'its name holds a backslash' });
      else if (spellings.some((secret) => path.basename(source).includes(secret)))
        problems.push({ name: path.posix.dirname(at), problem: 'a name in it holds a secret' });
      else if (entry.isFile()) await redactingCopy(source, target, spellings);
      else if (entry.isDirectory()) {
        await mkdir(target);
        for (const part of await readdir(source))
          await keep(`${at}/${part}`, path.join(source, part), path.join(target, part));
        await syncFolder(target);
      } else
        problems.push({
          name: at,
          problem: entry.isSymbolicLink() ? 'it is a link' : 'it is no regular file',
        });
    } catch (error) {
      problems.push({ name: at, problem: messageOf(error) });
    }
  };
  await keep(name, from, to);
  return problems;
}

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
