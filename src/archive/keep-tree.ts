/**
 * Brings a file or folder that a sandbox or a user's code wrote into the archive. Regular files only, contents only: links, devices, pipes and names
 * that hold a secret are left out and named. A folder above is never a link, because the archive makes all of them.
 */
import { lstatSync, readdirSync, type Dirent, type Stats } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../core/errors.ts';
import { keepFile } from './keep-file.ts';

export interface KeepProblem {
  readonly name: string;
  readonly problem: string;
}

export interface TreeToKeep {
  readonly name: string;
  readonly from: string;
  /** Nothing is there. */
  readonly to: string;
  readonly mayBeTaken: boolean;
}

export interface KeepOptions {
  readonly spellings: readonly string[];
  /** Makes a folder, with those above it, before the first file in it: what holds none is not kept. */
  readonly makeFolder: (dir: string) => void;
  /** Takes over the descriptor of a file that is to be on disk. */
  readonly sync: (name: string, descriptor: number) => void;
}

/** What could not be kept, by its name under `name`. A missing `from` is no problem and keeps nothing. */
export function keepTree(
  { name, from, to, mayBeTaken }: TreeToKeep,
  { spellings, makeFolder, sync }: KeepOptions,
): readonly KeepProblem[] {
  const problems: KeepProblem[] = [];
  const refuse = (at: string, problem: string): void => void problems.push({ name: at, problem });
  const keep = (at: string, entry: Entry, { source, target }: Place): void => {
    const base = path.basename(source);
    // No reader could fetch it: in another system it is a way out of the folder.
    if (base.includes('\\')) refuse(at, 'its name holds a backslash');
    else if (spellings.some((secret) => base.includes(secret)))
      refuse(path.posix.dirname(at), 'a name in it holds a secret');
    else if (entry.isFile()) {
      makeFolder(path.dirname(target));
      sync(at, keepFile({ from: source, to: target, mayBeTaken }, spellings));
    } else if (entry.isDirectory()) {
      for (const part of readdirSync(source, { withFileTypes: true }))
        attempt(`${at}/${part.name}`, part, {
          source: path.join(source, part.name),
          target: path.join(target, part.name),
        });
    } else refuse(at, entry.isSymbolicLink() ? 'it is a link' : 'it is no regular file');
  };
  const attempt = (at: string, entry: Entry, place: Place): void => {
    try {
      keep(at, entry, place);
    } catch (error) {
      const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      refuse(at, isGone ? 'it is gone, or its name is no text' : messageOf(error));
    }
  };
  const entry = lstatSync(from, { throwIfNoEntry: false });
  if (entry !== undefined) attempt(name, entry, { source: from, target: to });
  return problems;
}

type Entry = Dirent | Stats;

interface Place {
  readonly source: string;
  readonly target: string;
}
