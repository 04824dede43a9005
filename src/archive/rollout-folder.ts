/**
 * Writes what a rollout leaves: a draft of its folder beside the others, all of it on disk, then renamed as one. Where the folder is there already, the parts of
 * the draft take their places in it one by one. A reader, and a server that died, therefore leave no half file under a name of the rollout, and after a power cut
 * there is the whole folder or none. Its calls of the system are synchronous, for a thread that does nothing else: each handed to another thread and waited for, they
 * would cost a server more than what they do. Only the disk is waited for, for many files at a time and for several rollouts.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../core/errors.ts';
import { makeFolderSync } from '../core/make-folder.ts';
import type { KeptFile } from '../wire/rollout/kept-file.ts';
import { writeNew } from './keep-file.ts';
import { keepTree, type KeepProblem } from './keep-tree.ts';

/** Holds the id where the folder's name is a hash. */
export const idFile = '.rollout-id';
/** Of one rollout: each is open as long. */
const mostUnsynced = 32;
const syncAsync = promisify(fsync);
const draftName = /^\..{36}\.partial/;

/** Plain data: it may cross to another thread. */
export interface FolderTask {
  /** Of the archive, absolute; made where it is missing. */
  readonly dir: string;
  /** Of the rollout's folder in it. */
  readonly folder: string;
  /** For {@link idFile}; null = the folder's name says it. */
  readonly id: string | null;
  readonly texts: readonly { readonly name: string; readonly text: string }[];
  readonly files: readonly KeptFile[];
  /** Of secrets, the longest first, none of them empty: replaced in files. */
  readonly spellings: readonly string[];
}

/** Everything that no problem names is on disk when it resolves. Never rejects. */
export async function saveFolder(task: FolderTask): Promise<readonly KeepProblem[]> {
  const draft = path.join(task.dir, newDraft());
  try {
    makeFolderSync(task.dir);
    mkdirSync(draft);
    return await new FolderDraft(task, draft).save();
  } catch (error) {
    const problem = messageOf(error);
    return [...task.texts, ...task.files].map(({ name }) => ({ name, problem }));
  } finally {
    discard(draft);
  }
}

/** What a save left that did not end. */
export async function removeDrafts(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(() => []))
    if (draftName.test(name)) await rm(path.join(dir, name), { recursive: true, force: true });
}

/** A name beside those of rollouts, which no reader is shown. */
export function newDraft(): string {
  return `.${randomUUID()}.partial`;
}

class FolderDraft {
  readonly #task: FolderTask;
  readonly #dir: string;
  readonly #problems: KeepProblem[] = [];
  /** Itself and those in it. */
  readonly #folders: Set<string>;
  #unsynced: { readonly name: string; readonly descriptor: number }[] = [];

  constructor(task: FolderTask, dir: string) {
    this.#task = task;
    this.#dir = dir;
    this.#folders = new Set([dir]);
  }

  async save(): Promise<readonly KeepProblem[]> {
    const { dir, folder, id, texts, files, spellings } = this.#task;
    const makeFolder = (one: string): void => this.#makeFolder(one);
    const sync = (name: string, descriptor: number): void => this.#sync(name, descriptor);
    if (id !== null) this.#write(idFile, id);
    for (const { name, text } of texts) this.#put(name, () => this.#write(name, text));
    for (const { name, path: from, mayBeTaken = false } of files)
      this.#put(name, () => {
        const tree = { name, from, to: path.join(this.#dir, name), mayBeTaken };
        this.#problems.push(...keepTree(tree, { spellings, makeFolder, sync }));
      });
    // When all names are there.
    for (const one of this.#folders) this.#syncFolder(one);
    await this.#synced();
    const target = path.join(dir, folder);
    if (lstatSync(target, { throwIfNoEntry: false }) === undefined) renameSync(this.#dir, target);
    else this.#merge(target);
    // Whoever hears that everything is kept may remove where it came from.
    this.#syncFolder(dir);
    await this.#synced();
    return this.#problems;
  }

  #put(name: string, put: () => void): void {
    try {
      if (!isKeepable(name)) throw new Error('it is no name for a file of the archive');
      this.#clear(path.join(this.#dir, name));
      put();
    } catch (error) {
      this.#problem(name, error);
    }
  }

  /** Of two with one name the later one counts. */
  #clear(place: string): void {
    rmSync(place, { recursive: true, force: true });
    for (const dir of this.#folders)
      if (dir === place || dir.startsWith(`${place}${path.sep}`)) this.#folders.delete(dir);
  }

  #write(name: string, text: string): void {
    const file = path.join(this.#dir, name);
    this.#makeFolder(path.dirname(file));
    this.#sync(
      name,
      writeNew(file, (descriptor) => writeFileSync(descriptor, text)),
    );
  }

  #makeFolder(dir: string): void {
    if (this.#folders.has(dir)) return;
    this.#makeFolder(path.dirname(dir));
    mkdirSync(dir);
    this.#folders.add(dir);
  }

  /** What is complete takes the place of what was there, a link included; nothing made = nothing replaced. */
  #merge(target: string): void {
    const { id, texts, files } = this.#task;
    const changed = new Set([target]);
    const names = new Set([...texts, ...files].map(({ name }) => name).filter(isKeepable));
    for (const name of [...(id === null ? [] : [idFile]), ...names])
      try {
        const made = path.join(this.#dir, name);
        if (lstatSync(made, { throwIfNoEntry: false }) === undefined) continue;
        const place = path.join(target, name);
        const above = path.dirname(place);
        makeFolderSync(above);
        replace(made, place);
        for (let at = above; at !== target; at = path.dirname(at)) changed.add(at);
      } catch (error) {
        this.#problem(name, error);
      }
    // Of a program that made its drafts here.
    for (const one of readdirSync(target)) if (draftName.test(one)) discard(path.join(target, one));
    for (const one of changed) this.#syncFolder(one);
  }

  /** Makes the names in a folder durable: without it a file that was synced itself may be missing after a power cut. */
  #syncFolder(dir: string): void {
    try {
      this.#sync('.', openSync(dir, 'r'));
    } catch (error) {
      this.#problem('.', error);
    }
  }

  /** Takes the descriptor over. Few of a long tree are open at a time. */
  #sync(name: string, descriptor: number): void {
    this.#unsynced.push({ name, descriptor });
    if (this.#unsynced.length <= mostUnsynced) return;
    for (const one of this.#unsynced.splice(0))
      try {
        fsyncSync(one.descriptor);
      } catch (error) {
        this.#problem(one.name, error);
      } finally {
        closeSync(one.descriptor);
      }
  }

  /** Side by side they share the work of the disk. */
  async #synced(): Promise<void> {
    const syncing = this.#unsynced.splice(0).map(async ({ name, descriptor }) => {
      try {
        await syncAsync(descriptor);
      } catch (error) {
        this.#problem(name, error);
      } finally {
        closeSync(descriptor);
      }
    });
    await Promise.all(syncing);
  }

  #problem(name: string, error: unknown): void {
    this.#problems.push({ name, problem: messageOf(error) });
  }
}

/** What cannot be removed now goes with the next life of the archive. */
function discard(draft: string): void {
  try {
    rmSync(draft, { recursive: true, force: true });
  } catch {
    return;
  }
}

/** A plain relative path, not one of the archive's own. */
function isKeepable(name: string): boolean {
  const parts = name.split('/');
  return !/[\\\0]/.test(name) && parts.every((part) => part !== '' && !part.startsWith('.'));
}

function replace(made: string, place: string): void {
  try {
    renameSync(made, place);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EISDIR' && code !== 'ENOTDIR' && code !== 'ENOTEMPTY' && code !== 'EEXIST')
      throw error;
    const grave = path.join(path.dirname(made), newDraft());
    renameSync(place, grave);
    renameSync(made, place);
  }
}
