/** The archive as folders, `DIR/FOLDER/NAME`, the folder named after the rollout's id. How one is written: `rollout-folder.ts`. */
import { readFile, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { spellingsOf } from '../trajectory/secret-spellings.ts';
import { documentText } from './document-text.ts';
import { folderName, idOfFolder } from './folder-name.ts';
import type { KeepProblem } from './keep-tree.ts';
import { FileDigests, filesBelow, locateBelow } from './kept-files.ts';
import type { ArchivedFile, ArchivedRollout, RolloutArchive } from './rollout-archive.ts';
import { idFile, newDraft, removeDrafts, saveFolder, type FolderTask } from './rollout-folder.ts';

/** Shorter values are left alone: they occur in ordinary text, and replacing them would corrupt it. */
const minSecretLength = 6;

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
  /** Does {@link saveFolder} in another thread. Default: here. */
  readonly saveFolder?: (task: FolderTask) => Promise<readonly KeepProblem[]>;
}

export class FileRolloutArchive implements RolloutArchive {
  readonly #dir: string;
  readonly #logger: Logger;
  readonly #secrets: readonly string[];
  readonly #saveFolder: (task: FolderTask) => Promise<readonly KeepProblem[]>;
  /** Per folder the end of the line of those who write in it. */
  readonly #writers = new Map<string, Promise<unknown>>();
  readonly #sizes = new Map<string, FolderSize>();
  readonly #digests = new FileDigests();
  /** Leftovers of a server that died are removed once. */
  #swept: Promise<void> | null = null;

  constructor({ dir, logger, secrets = [], saveFolder: save = saveFolder }: FileArchiveOptions) {
    this.#dir = dir;
    this.#logger = logger;
    this.#secrets = secrets;
    this.#saveFolder = save;
  }

  async save(rollout: ArchivedRollout): Promise<readonly KeepProblem[]> {
    const { rolloutId, documents, files } = rollout;
    const folder = folderName(rolloutId);
    return await this.#alone(folder, async () => {
      this.#sizes.delete(folder);
      const known = new Set([...rollout.secrets, ...this.#secrets]);
      const secrets = [...known].filter(({ length }) => length >= minSecretLength);
      const texts: { readonly name: string; readonly text: string }[] = [];
      const problems: KeepProblem[] = [];
      for (const [name, value] of Object.entries(documents))
        try {
          texts.push({ name, text: await wholeText(documentText(name, value, secrets)) });
        } catch (error) {
          problems.push({ name, problem: messageOf(error) });
        }
      await this.#sweep();
      const saved = await this.#saveFolder({
        ...{ dir: this.#dir, folder, id: idOfFolder(folder) === null ? rolloutId : null },
        ...{ texts, files, spellings: spellingsOf(secrets) },
      });
      return [...problems, ...saved];
    });
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
    await this.#sweep();
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

  async #sweep(): Promise<void> {
    this.#swept ??= removeDrafts(this.#dir);
    await this.#swept;
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

async function wholeText(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}
