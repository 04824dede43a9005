/** Captured calls as files, `DIR/FOLDER/model-calls.steps.ndjson`, one folder per rollout, named by a hash of its id. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rm, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { boundary } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { openTrajectory } from '../../trajectory/file-trajectory-log.ts';
import { readSpill, spillFileOf } from '../../trajectory/spill.ts';
import type { CallCapture, RouteCapture, WantedOfEngine } from './call-capture.ts';
import { FileRouteCapture } from './route-capture.ts';

/** What the archive calls it. */
export const capturedCallsName = 'model-calls.steps.ndjson';
const documentName = 'model-calls.json';

/** Of the head of such a file. */
const format = { name: 'model-calls', version: '1' } as const;

export interface FileCaptureOptions {
  /** Absolute; made when something is first kept. */
  readonly dir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of the calls of one rollout. Default 1 GiB. */
  readonly maxBytes?: number;
}

const gibibyte = 1024 ** 3;

export class FileCapture implements CallCapture {
  readonly #options: FileCaptureOptions;

  constructor(options: FileCaptureOptions) {
    this.#options = options;
  }

  open(rolloutId: string, secrets: readonly string[], wanted?: WantedOfEngine): RouteCapture {
    const { clock, logger, maxBytes = gibibyte } = this.#options;
    const dir = this.#folder(rolloutId);
    return new FileRouteCapture({
      ...{ rolloutId, clock, logger, maxBytes },
      ...(wanted !== undefined && { wanted }),
      openLog: async () => {
        await boundary(
          { code: 'TRAJECTORY_WRITE_FAILED', phase: 'model-call', what: 'capturing model calls' },
          // The one above it is nearly always there.
          () => mkdir(dir, { mode: 0o700 }).catch(() => makeFolder(dir, { mode: 0o700 })),
        );
        return await openTrajectory({
          file: path.join(dir, documentName),
          secrets,
          head: {
            ...{ sessionId: rolloutId, trajectoryId: null, agent: format },
            ...{ notes: null, extra: null },
          },
        });
      },
    });
  }

  async fileOf(rolloutId: string): Promise<string | null> {
    const file = spillFileOf(path.join(this.#folder(rolloutId), documentName));
    if (!existsSync(file)) return null;
    const entry = await lstat(file).catch(() => null);
    return entry?.isFile() === true ? file : null;
  }

  async left(): Promise<readonly string[]> {
    const { dir } = this.#options;
    const names = await readdir(dir).catch(() => []);
    const found: string[] = [];
    for (const name of names) {
      const folder = path.join(dir, name);
      const rolloutId = await rolloutOf(spillFileOf(path.join(folder, documentName)));
      if (rolloutId !== null && folder === this.#folder(rolloutId)) found.push(rolloutId);
      else await rm(folder, { recursive: true, force: true });
    }
    return found;
  }

  async forget(rolloutId: string): Promise<void> {
    const dir = this.#folder(rolloutId);
    // Most often there is none: looking costs less than removing nothing.
    if (!existsSync(dir)) return;
    try {
      // All that is in it, nearly always: two calls of the system where removing a tree takes eight.
      await unlink(spillFileOf(path.join(dir, documentName)));
      await rmdir(dir);
    } catch {
      await rm(dir, { recursive: true, force: true });
    }
  }

  #folder(rolloutId: string): string {
    const name = createHash('sha256').update(rolloutId, 'utf16le').digest('hex');
    return path.join(this.#options.dir, name);
  }
}

/** Of the head; null = it has none, so nothing was kept. */
async function rolloutOf(file: string): Promise<string | null> {
  try {
    for await (const line of readSpill(file))
      return 'slipway_spill' in line ? line.head.sessionId : null;
  } catch {
    // Torn before its first line was whole, or never begun.
  }
  return null;
}
