/** The folder in which a rollout's code leaves files: `ID/artifacts`, beside what is written about the rollout. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { folderName } from '../../archive/folder-name.ts';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { KeptFile } from '../../wire/rollout/kept-file.ts';

/** Written beside the artifacts, so that it is never taken for one: a folder that exists need not be writable. */
const marker = '.osmosis-health-check';
const attempts = 3;
const firstWaitMs = 500;

export class WorkFolder {
  readonly #dir: string;
  readonly #artifacts: string;
  #isUsable = false;

  /** `trialsDir`: absolute. */
  constructor(trialsDir: string, rolloutId: string) {
    this.#dir = path.join(trialsDir, folderName(rolloutId));
    this.#artifacts = path.join(this.#dir, 'artifacts');
  }

  get path(): string {
    return this.#dir;
  }

  /** Null when it cannot be made: the rollout goes on without. What an earlier server left under this id is removed. */
  async create(
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
    signal: AbortSignal,
  ): Promise<string | null> {
    for (let attempt = 1; ; attempt += 1)
      try {
        await rm(this.#dir, { recursive: true, force: true });
        await mkdir(this.#artifacts, { recursive: true });
        await writeFile(path.join(this.#dir, marker), '');
        this.#isUsable = true;
        return this.#artifacts;
      } catch (error) {
        if (attempt === attempts) {
          logger.log('warn', 'no folder for artifacts', { reason: messageOf(error) });
          return null;
        }
        await clock.sleep(firstWaitMs * 2 ** (attempt - 1), signal);
      }
  }

  /** What the archive keeps: the artifacts if there are any, and what the code printed. */
  async files(printed: string): Promise<readonly KeptFile[]> {
    if (!this.#isUsable) return [];
    const files: KeptFile[] = [];
    const names = await readdir(this.#artifacts).catch(() => []);
    if (names.length > 0) files.push({ name: 'artifacts', path: this.#artifacts });
    if (printed !== '') {
      const file = path.join(this.#dir, 'console.log');
      const isWritten = await writeFile(file, printed).then(
        () => true,
        () => false,
      );
      if (isWritten) files.push({ name: 'console.log', path: file });
    }
    return files;
  }

  async remove(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
  }
}
