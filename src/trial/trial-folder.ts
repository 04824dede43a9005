import { cp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { boundary } from '../core/errors.ts';
import { makeFolder } from '../core/make-folder.ts';
import { toHarborJson } from '../wire/harbor/dump.ts';
import { replaceFile } from './replace-file.ts';

/** Host folders of what one round of a trial leaves. */
export interface RoundFolders {
  readonly agent: string;
  readonly verifier: string;
  readonly artifacts: string;
}

/** The folder of one trial on the host, laid out as Harbor does. */
export class TrialFolder {
  readonly dir: string;

  constructor(trialsDir: string, trialName: string) {
    this.dir = path.join(path.resolve(trialsDir), trialName);
  }

  /** Where the agent, the verifier and the collection write while a round runs. */
  get current(): RoundFolders {
    return this.#folders(this.dir);
  }

  file(name: string): string {
    return path.join(this.dir, name);
  }

  step(name: string): RoundFolders {
    return this.#folders(path.join(this.dir, 'steps', name));
  }

  #folders(base: string): RoundFolders {
    return {
      agent: path.join(base, 'agent'),
      verifier: path.join(base, 'verifier'),
      artifacts: path.join(base, 'artifacts'),
    };
  }

  /** Makes the folder and its parts. DISK_FULL, or INTERNAL when it cannot be made. */
  async create(): Promise<void> {
    await this.#write('trial folder', () => this.makeFolders(this.current));
  }

  async makeFolders(folders: RoundFolders): Promise<void> {
    for (const dir of Object.values(folders) as string[]) await makeFolder(dir);
  }

  /** Replaces a JSON document as a whole; a reader never sees half of it. */
  async writeJson(name: string, document: unknown): Promise<void> {
    await this.#write(name, () => replaceFile(this.file(name), toHarborJson(document)));
  }

  async writeText(name: string, text: string): Promise<void> {
    await this.#write(name, () => replaceFile(this.file(name), text));
  }

  /** Moves what a round left into the folder of its step, replacing what is there, and leaves fresh folders behind. */
  async archiveStep(name: string): Promise<void> {
    await this.#write(`steps/${name}`, async () => {
      const target = this.step(name);
      for (const part of ['agent', 'verifier', 'artifacts'] as const) {
        await makeFolder(this.current[part]);
        await moveContents(this.current[part], target[part]);
      }
    });
  }

  /** Removes the round folders that hold nothing, as Harbor does after the last step. */
  async removeEmptyRound(): Promise<void> {
    for (const dir of Object.values(this.current) as string[])
      if (!(await holdsFiles(dir))) await rm(dir, { recursive: true, force: true });
  }

  async #write<T>(what: string, work: () => Promise<T>): Promise<T> {
    return await boundary({ code: 'INTERNAL', phase: 'cleanup', what }, work);
  }
}

async function moveContents(from: string, to: string): Promise<void> {
  await makeFolder(to);
  for (const name of await readdir(from)) {
    const target = path.join(to, name);
    await rm(target, { recursive: true, force: true });
    try {
      await rename(path.join(from, name), target);
    } catch {
      // Another file system below the trial folder: copy, then remove.
      await cp(path.join(from, name), target, { recursive: true, verbatimSymlinks: true });
      await rm(path.join(from, name), { recursive: true, force: true });
    }
  }
}

async function holdsFiles(dir: string): Promise<boolean> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.some((entry) => !entry.isDirectory());
}
