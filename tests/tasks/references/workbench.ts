/** A reference resolver over a temporary cache, for tests. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, type Clock } from '../../../src/core/clock.ts';
import type { Logger } from '../../../src/core/logger.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { Git } from '../../../src/tasks/references/git.ts';
import { HttpRequests, type Fetch } from '../../../src/tasks/references/http-requests.ts';
import { ReferenceResolver } from '../../../src/tasks/references/reference-resolver.ts';
import { RegistryClient } from '../../../src/tasks/references/registry-client.ts';
import type { UnpackLimits } from '../../../src/tasks/references/unpack-archive.ts';
import { datasetEntrySchema, type DatasetEntry } from '../../../src/wire/harbor/dataset-entry.ts';
import { taskEntrySchema, type TaskEntry } from '../../../src/wire/harbor/task-entry.ts';
import type { RegistryServer } from '../../fakes/registry-server.ts';

export function taskEntry(fields: Readonly<Record<string, unknown>>): TaskEntry {
  return taskEntrySchema.parse(fields);
}

export function datasetEntry(fields: Readonly<Record<string, unknown>>): DatasetEntry {
  return datasetEntrySchema.parse(fields);
}

/** Sleeps of no length, remembered. */
export class InstantClock implements Clock {
  readonly sleepsMs: number[] = [];

  now(): Date {
    return systemClock.now();
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.sleepsMs.push(ms);
    return Promise.resolve();
  }
}

export interface WorkbenchOptions {
  readonly registry?: RegistryServer;
  readonly fetch?: Fetch;
  readonly unpackLimits?: UnpackLimits;
  readonly maxDownloads?: number;
  readonly timeoutMs?: number;
  readonly gitExecutable?: string;
}

export class Workbench implements AsyncDisposable {
  readonly dir: string;
  readonly cacheDir: string;
  readonly clock = new InstantClock();
  readonly log: string[] = [];
  readonly git: Git;
  readonly registry: RegistryClient | null;
  readonly resolver: ReferenceResolver;

  private constructor(dir: string, options: WorkbenchOptions) {
    this.dir = dir;
    this.cacheDir = join(dir, 'cache');
    this.git = new Git({
      variables: process.env,
      ...(options.gitExecutable === undefined ? {} : { executable: options.gitExecutable }),
    });
    const http = new HttpRequests({
      fetch: options.fetch ?? fetch,
      clock: this.clock,
      timeoutMs: options.timeoutMs ?? 5000,
      idleTimeoutMs: options.timeoutMs ?? 5000,
    });
    this.registry =
      options.registry === undefined
        ? null
        : new RegistryClient(
            { baseUrl: options.registry.baseUrl, key: options.registry.key },
            http,
          );
    const logger: Logger = { log: (level, message) => void this.log.push(`${level} ${message}`) };
    this.resolver = new ReferenceResolver({
      cacheDir: this.cacheDir,
      baseDir: dir,
      locks: new FileLocks(systemClock),
      registry: this.registry,
      git: this.git,
      fetch: options.fetch ?? fetch,
      clock: this.clock,
      logger,
      ...(options.maxDownloads === undefined ? {} : { maxDownloads: options.maxDownloads }),
      ...(options.unpackLimits === undefined ? {} : { unpackLimits: options.unpackLimits }),
    });
  }

  static async make(options: WorkbenchOptions = {}): Promise<Workbench> {
    return new Workbench(await mkdtemp(join(tmpdir(), 'slipway-references-')), options);
  }

  /** A program in the workbench. */
  async script(name: string, text: string): Promise<string> {
    const file = join(this.dir, name);
    await writeFile(file, text);
    await chmod(file, 0o755);
    return file;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.dir, { recursive: true, force: true });
  }
}
