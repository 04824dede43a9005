/**
 * A job on disk: `config.json`, `lock.json`, `result.json`, `job.log` and one folder per trial. Folders that are not
 * trials of this job are never touched, whoever made them.
 */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { attribute, boundary, isRolloutError, messageOf, RolloutError } from '../core/errors.ts';
import { makeFolder } from '../core/make-folder.ts';
import { replaceFile } from '../trial/replace-file.ts';
import { toHarborJson } from '../wire/harbor/dump.ts';
import { jobResultSchema, type JobResult } from '../wire/harbor/job-result.ts';
import { trialConfigSchema, type TrialConfig } from '../wire/harbor/trial-config.ts';
import { trialResultSchema, type TrialResult } from '../wire/harbor/trial-result.ts';

/** A sub-folder as found. */
export type StoredTrial =
  | {
      readonly state: 'finished';
      readonly name: string;
      readonly config: TrialConfig;
      readonly result: TrialResult;
    }
  /** It holds a trial configuration of ours but no result: the run died in it. */
  | { readonly state: 'incomplete'; readonly name: string; readonly config: TrialConfig }
  /** A result that cannot be read: left alone, its trial runs again under a new name. */
  | { readonly state: 'unreadable'; readonly name: string; readonly reason: string }
  /** Anything else: not ours. */
  | { readonly state: 'foreign'; readonly name: string };

export class JobFolder {
  readonly dir: string;

  /** `dir` is absolute. Touches nothing. */
  constructor(dir: string) {
    this.dir = dir;
  }

  get configFile(): string {
    return join(this.dir, 'config.json');
  }
  get lockFile(): string {
    return join(this.dir, 'lock.json');
  }
  get resultFile(): string {
    return join(this.dir, 'result.json');
  }
  get logFile(): string {
    return join(this.dir, 'job.log');
  }
  trialDir(name: string): string {
    return join(this.dir, name);
  }

  async create(): Promise<void> {
    try {
      await makeFolder(this.dir);
    } catch (error) {
      const known = attribute(error, 'JOB_UNREADABLE', 'config', `job folder ${this.dir}`);
      if (known.code !== 'JOB_UNREADABLE') throw known;
      throw new RolloutError('JOB_UNREADABLE', known.message, {
        phase: 'config',
        field: 'jobs_dir',
        remedy: 'Make the folder writable, or choose another --jobs-dir.',
        cause: error,
      });
    }
  }

  async write(file: string, document: unknown): Promise<void> {
    const at = { code: 'INTERNAL', phase: 'config', what: `cannot write ${file}` } as const;
    await boundary(at, () => replaceFile(file, toHarborJson(document)));
  }

  /** The parsed JSON of a file of this folder; null when it is missing. JOB_UNREADABLE when it is no JSON. */
  async read(file: string): Promise<unknown> {
    return await readJson(file);
  }

  /** null when missing or not readable: the result is rebuilt from the trials. */
  async readResult(): Promise<JobResult | null> {
    return await parseIfPossible(this.resultFile, jobResultSchema);
  }

  /** Sub-folders in order of name. */
  async trials(): Promise<StoredTrial[]> {
    const entries = await readdir(this.dir, { withFileTypes: true }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw new RolloutError('JOB_UNREADABLE', `${this.dir}: ${messageOf(error)}`, {
        phase: 'config',
        field: this.dir,
        remedy: 'Make the folder readable, or choose another --jobs-dir.',
        cause: error,
      });
    });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const stored: StoredTrial[] = [];
    for (const name of names.sort()) stored.push(await readStoredTrial(this.trialDir(name), name));
    return stored;
  }

  /** Deletes the folder of a trial of this job. The caller has made sure of that. */
  async removeTrial(name: string): Promise<void> {
    const at = { code: 'INTERNAL', phase: 'cleanup', what: `cannot remove trial ${name}` } as const;
    await boundary(at, () => rm(this.trialDir(name), { recursive: true, force: true }));
  }
}

/** Reads one trial folder. */
export async function readStoredTrial(dir: string, name: string): Promise<StoredTrial> {
  const config = await parseIfPossible(join(dir, 'config.json'), trialConfigSchema);
  let document: unknown;
  try {
    document = await readJson(join(dir, 'result.json'));
  } catch (error) {
    if (config === null) return { state: 'foreign', name };
    return { state: 'unreadable', name, reason: messageOf(error) };
  }
  if (document === null)
    return config?.trial_name === name
      ? { state: 'incomplete', name, config }
      : { state: 'foreign', name };
  const result = trialResultSchema.safeParse(document);
  if (!result.success)
    return config === null
      ? { state: 'foreign', name }
      : { state: 'unreadable', name, reason: 'result.json has another shape' };
  return { state: 'finished', name, config: result.data.config, result: result.data };
}

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw unreadable(file, error);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, cause: unknown): RolloutError {
  return new RolloutError('JOB_UNREADABLE', `${file} cannot be read`, {
    phase: 'config',
    field: file,
    remedy: 'Restore the file, or run the job under another name.',
    cause,
  });
}

async function parseIfPossible<T extends z.ZodType>(
  file: string,
  schema: T,
): Promise<z.output<T> | null> {
  try {
    const parsed = schema.safeParse(await readJson(file));
    return parsed.success ? parsed.data : null;
  } catch (error) {
    if (isRolloutError(error, 'JOB_UNREADABLE')) return null;
    throw error;
  }
}
