/**
 * The archive as folders, `DIR/FOLDER/NAME`, the folder named after the rollout's id. Everything comes in under a temporary name and is renamed when it
 * is complete, so that a reader, and a server that died, leave no half file under a name of the rollout.
 */
import { randomUUID } from 'node:crypto';
import { open, readFile, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { makeFolder } from '../core/make-folder.ts';
import { spellingsOf } from '../trajectory/secret-spellings.ts';
import { documentText } from './document-text.ts';
import { folderName, idOfFolder } from './folder-name.ts';
import { keepTree, type KeepProblem } from './keep-tree.ts';
import { FileDigests, filesBelow, locateBelow } from './kept-files.ts';
import { syncFolder } from '../store/sync-folder.ts';
import type { ArchivedFile, ArchivedRollout, RolloutArchive } from './rollout-archive.ts';

/** Shorter values are left alone: they occur in ordinary text, and replacing them would corrupt it. */
const minSecretLength = 6;
/** Holds the id where the folder's name is a hash. */
const idFile = '.rollout-id';
const draftName = /^\..{36}\.partial/;

/** What a folder holds and since when it has not changed. */
interface FolderSize {
  readonly bytes: number;
  readonly changedMs: number;
}

export interface FileArchiveOptions {
  /** Absolute; made when something is first saved. */
  readonly dir: string;
  readonly logger: Logger;
  /** Replaced in everything that is kept, beside those of each rollout. */
  readonly secrets?: readonly string[];
}

export class FileRolloutArchive implements RolloutArchive {
  readonly #dir: string;
  readonly #logger: Logger;
  readonly #secrets: readonly string[];
  /** Per folder the end of the line of those who write in it. */
  readonly #writers = new Map<string, Promise<unknown>>();
  readonly #sizes = new Map<string, FolderSize>();
  readonly #digests = new FileDigests();
  /** Leftovers of a server that died are removed once. */
  #swept: Promise<void> | null = null;

  constructor({ dir, logger, secrets = [] }: FileArchiveOptions) {
    this.#dir = dir;
    this.#logger = logger;
    this.#secrets = secrets;
  }

  async save(rollout: ArchivedRollout): Promise<readonly KeepProblem[]> {
    const name = folderName(rollout.rolloutId);
    return await this.#alone(name, async () => {
      this.#sizes.delete(name);
      const dir = path.join(this.#dir, name);
      try {
        await makeFolder(dir);
        await removeDrafts(dir);
        if (idOfFolder(name) === null) await this.#putId(dir, rollout.rolloutId);
      } catch (error) {
        const problem = messageOf(error);
        const names = [
          ...Object.keys(rollout.documents),
          ...rollout.files.map((file) => file.name),
        ];
        return names.map((one) => ({ name: one, problem }));
      }
      const { problems, changed } = await this.#fill(dir, rollout);
      try {
        // The names too: whoever hears that everything is kept may remove where it came from.
        await Promise.all([...changed, dir, this.#dir].map(syncFolder));
        return problems;
      } catch (error) {
        return [...problems, { name: '.', problem: messageOf(error) }];
      }
    });
  }

  /** `changed`: folders below `dir` that hold new names. */
  async #fill(
    dir: string,
    rollout: ArchivedRollout,
  ): Promise<{ readonly problems: readonly KeepProblem[]; readonly changed: ReadonlySet<string> }> {
    const known = new Set([...rollout.secrets, ...this.#secrets]);
    const secrets = [...known].filter(({ length }) => length >= minSecretLength);
    const spellings = spellingsOf(secrets);
    const wanted: readonly Wanted[] = [
      ...Object.entries(rollout.documents).map(([name, value]) => ({
        name,
        write: async (draft: string) => {
          await writeNew(draft, documentText(name, value, secrets));
          return [];
        },
      })),
      ...rollout.files.map(({ name, path: from }) => ({
        name,
        write: (draft: string) => keepTree({ name, from, to: draft }, spellings),
      })),
    ];
    // Written side by side they share the syncs of the disk. Named one after the other: one may lie in another.
    const drafts = await Promise.all(wanted.map((one) => makeDraft(dir, one)));
    const changed = new Set<string>();
    const problems: KeepProblem[] = [];
    for (const { name, draft, problems: found } of drafts) {
      problems.push(...found);
      if (draft === null) continue;
      try {
        const target = path.join(dir, name);
        const above = path.dirname(target);
        if (above !== dir) await makeFolder(above);
        await replace(draft, target);
        for (let at = above; at !== dir; at = path.dirname(at)) changed.add(at);
      } catch (error) {
        problems.push({ name, problem: messageOf(error) });
        await discard(draft);
      }
    }
    return { problems, changed };
  }

  async list(rolloutId: string): Promise<readonly ArchivedFile[]> {
    const dir = this.#folder(rolloutId);
    const described: ArchivedFile[] = [];
    for (const file of await filesBelow(dir)) {
      const one = await this.#digests.describe(dir, file);
      if (one !== null) described.push(one);
    }
    return described;
  }

  async locate(rolloutId: string, name: string): Promise<string | null> {
    return await locateBelow(this.#folder(rolloutId), name);
  }

  async document(rolloutId: string, name: string): Promise<unknown> {
    const file = await this.locate(rolloutId, name);
    if (file === null) return null;
    try {
      return JSON.parse(await readFile(file, 'utf8')) as unknown;
    } catch (error) {
      this.#logger.log('warn', 'a document of the archive cannot be read', {
        rollout: rolloutId,
        name,
        reason: messageOf(error),
      });
      return null;
    }
  }

  async remove(rolloutId: string): Promise<void> {
    const name = folderName(rolloutId);
    await this.#alone(name, () => this.#drop(name));
  }

  async trim(maxBytes: number): Promise<readonly string[]> {
    this.#swept ??= removeDrafts(this.#dir);
    await this.#swept;
    const known = await this.#measure();
    let total = known.reduce((sum, { size }) => sum + size.bytes, 0);
    const removed: string[] = [];
    for (const { name, size } of known.sort((a, b) => a.size.changedMs - b.size.changedMs)) {
      if (total <= maxBytes) break;
      if (this.#writers.has(name)) continue; // about to change, and therefore new
      const id = idOfFolder(name) ?? (await this.#idIn(name));
      await this.#alone(name, () => this.#drop(name));
      total -= size.bytes;
      if (id !== null) removed.push(id);
    }
    return removed;
  }

  async #measure(): Promise<{ readonly name: string; readonly size: FolderSize }[]> {
    const names = await this.#folders();
    const present = new Set(names);
    for (const name of this.#sizes.keys()) if (!present.has(name)) this.#sizes.delete(name);
    const measured = [];
    for (const name of names) {
      let size = this.#sizes.get(name);
      if (size === undefined) {
        const files = await filesBelow(path.join(this.#dir, name));
        size = {
          bytes: files.reduce((sum, { stats }) => sum + stats.size, 0),
          changedMs: Math.max(0, ...files.map(({ stats }) => stats.ctimeMs)),
        };
        if (!this.#writers.has(name)) this.#sizes.set(name, size);
      }
      measured.push({ name, size });
    }
    return measured;
  }

  async #folders(): Promise<string[]> {
    const entries = await readdir(this.#dir, { withFileTypes: true }).catch(() => []);
    return entries.flatMap((entry) =>
      entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : [],
    );
  }

  async #idIn(name: string): Promise<string | null> {
    return await readFile(path.join(this.#dir, name, idFile), 'utf8').catch(() => null);
  }

  async #putId(dir: string, rolloutId: string): Promise<void> {
    const draft = path.join(dir, newDraft());
    try {
      await writeNew(draft, rolloutId);
      await replace(draft, path.join(dir, idFile));
    } finally {
      await rm(draft, { force: true });
    }
  }

  /** Gone under its name at once, however long removing takes. */
  async #drop(name: string): Promise<void> {
    this.#sizes.delete(name);
    const grave = path.join(this.#dir, newDraft());
    try {
      await rename(path.join(this.#dir, name), grave);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      throw error;
    }
    await rm(grave, { recursive: true, force: true });
  }

  #folder(rolloutId: string): string {
    return path.join(this.#dir, folderName(rolloutId));
  }

  /** One writer per folder at a time, in the order of calls. */
  async #alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#writers.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#writers.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#writers.get(name) === mine) this.#writers.delete(name);
    }
  }
}

interface Wanted {
  readonly name: string;
  /** Writes it, durably, at a path that is free; says what of it could not be kept. */
  readonly write: (draft: string) => Promise<readonly KeepProblem[]>;
}

/** Never rejects. `draft` null = there is none to be named. */
async function makeDraft(
  dir: string,
  { name, write }: Wanted,
): Promise<{
  readonly name: string;
  readonly draft: string | null;
  readonly problems: readonly KeepProblem[];
}> {
  const draft = path.join(dir, newDraft());
  try {
    if (!isKeepable(name)) throw new Error('it is no name for a file of the archive');
    return { name, draft, problems: await write(draft) };
  } catch (error) {
    await discard(draft);
    return { name, draft: null, problems: [{ name, problem: messageOf(error) }] };
  }
}

async function writeNew(file: string, text: string | AsyncIterable<string>): Promise<void> {
  await using handle = await open(file, 'wx', 0o644);
  await handle.writeFile(text);
  await handle.sync();
}

/** A plain relative path, not one of the archive's own. */
function isKeepable(name: string): boolean {
  const parts = name.split('/');
  return !/[\\\0]/.test(name) && parts.every((part) => part !== '' && !part.startsWith('.'));
}

function newDraft(): string {
  return `.${randomUUID()}.partial`;
}

/** What cannot be removed now goes with the next save. */
async function discard(draft: string): Promise<void> {
  await rm(draft, { recursive: true, force: true }).catch(() => undefined);
}

/** What a save left that did not end. */
async function removeDrafts(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(() => []))
    if (draftName.test(name)) await rm(path.join(dir, name), { recursive: true, force: true });
}

/** Puts what is complete in the place of what was there, a link included; nothing made = nothing replaced. */
async function replace(draft: string, target: string): Promise<void> {
  try {
    await rename(draft, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    if (code !== 'EISDIR' && code !== 'ENOTDIR' && code !== 'ENOTEMPTY' && code !== 'EEXIST')
      throw error;
    const grave = `${draft}-old`;
    await rename(target, grave);
    await rename(draft, target);
    await rm(grave, { recursive: true, force: true });
  }
}
