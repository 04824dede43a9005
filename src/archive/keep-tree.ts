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

/** Of a tree, whatever its shape: files that are synced at the same time share the work of it, and each holds its buffers as long. */
const atOnce = 8;

/** On disk when it resolves. `to` does not exist. Answers what could not be kept, by its name under `name`; a missing `from` is no problem and keeps nothing. */
export async function keepTree(
  { name, from, to }: { readonly name: string; readonly from: string; readonly to: string },
  spellings: readonly string[],
): Promise<readonly KeepProblem[]> {
  const problems: KeepProblem[] = [];
  const folders: { readonly at: string; readonly target: string }[] = [];
  const writing = new Set<Promise<unknown>>();
  /** Resolves when it has begun. */
  const write = async (at: string, work: () => Promise<void>): Promise<void> => {
    if (writing.size >= atOnce) await Promise.race(writing);
    const one = work()
      .catch((error: unknown) => problems.push({ name: at, problem: messageOf(error) }))
      .finally(() => writing.delete(one));
    writing.add(one);
  };
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
      else if (entry.isFile()) await write(at, () => redactingCopy(source, target, spellings));
      else if (entry.isDirectory()) {
        await mkdir(target);
        folders.push({ at, target });
        for (const part of await readdir(source))
          await keep(`${at}/${part}`, path.join(source, part), path.join(target, part));
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
  await Promise.all(writing);
  // When all names are there.
  for (const { at, target } of folders) await write(at, () => syncFolder(target));
  await Promise.all(writing);
  return problems;
}

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
