/** The folder of an evaluation: its names, its lock, and the files that follow from its events and may be made anew at any time. */
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { HeldLock, LockPort } from '../../core/lock.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { replaceFile } from '../../trial/replace-file.ts';
import type { EvalItem } from './eval-items.ts';
import { standingOf, type EvalMetrics } from './eval-metrics.ts';

export class EvalFolder {
  readonly dir: string;
  readonly #outputDir: string;
  readonly #name: string;

  constructor(outputDir: string, name: string) {
    this.dir = join(outputDir, name);
    this.#outputDir = outputDir;
    this.#name = name;
  }

  path(...names: readonly string[]): string {
    return join(this.dir, ...names);
  }

  /** STORE_LOCKED while another process runs the evaluation; CONFIG_INVALID where nothing can be written. */
  lock(locks: LockPort): HeldLock {
    const held = this.#tryLock(locks);
    if (held !== null) return held;
    throw new RolloutError('STORE_LOCKED', `another process runs ${this.dir}`, {
      phase: 'queue',
      field: '--name',
      remedy: 'Wait for its end, or give --name NAME.',
    });
  }

  #tryLock(locks: LockPort): HeldLock | null {
    try {
      return locks.tryAcquire(join(this.#outputDir, '.locks', `${this.#name}.lock`));
    } catch (error) {
      throw new RolloutError(
        'CONFIG_INVALID',
        `${this.#outputDir} cannot hold results: ${messageOf(error)}`,
        {
          ...{ phase: 'config', field: '--output', cause: error },
          remedy: 'Name a folder that this user may write to: --output DIR.',
        },
      );
    }
  }

  async make(): Promise<void> {
    await makeFolder(this.dir);
  }

  /** null = nothing is there; no manifest for what is damaged. JOB_CONFLICT for a folder that is no evaluation's: nothing of it is touched. */
  async manifest(): Promise<unknown> {
    const names = await this.#names();
    if (names.length === 0) return null;
    if (!names.includes('manifest.json') && !names.includes('events.jsonl'))
      throw new RolloutError('JOB_CONFLICT', `${this.dir} is there and is no evaluation's`, {
        phase: 'queue',
        field: '--name',
        remedy: 'Give --name NAME, or another folder for results: --output DIR.',
      });
    const text = await readFile(this.path('manifest.json'), 'utf8').catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
      throw error;
    });
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return {};
    }
  }

  /** Without drafts of a manifest that was never written. */
  async #names(): Promise<readonly string[]> {
    const names = await readdir(this.dir).catch((error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return [];
      if (code === 'ENOTDIR') return [this.#name];
      throw error;
    });
    return names.filter((name) => !name.startsWith('.manifest.json-'));
  }

  async writeJson(name: string, value: unknown): Promise<void> {
    await replaceFile(this.path(name), `${JSON.stringify(value, null, 2)}\n`);
  }

  /** Moves what is there out of the way; answers where to, null = nothing was there. */
  async archive(now: Date): Promise<string | null> {
    const stamp = now.toISOString().replace(/[-:]/g, '').replace('.', '');
    const to = `${this.dir}.archive-${stamp}`;
    try {
      await rename(this.dir, to);
      return to;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async writeReports(
    items: readonly EvalItem[],
    metrics: EvalMetrics,
    datasetRow: (rowIndex: number) => number,
  ): Promise<void> {
    const ended = items.filter((item) => item.ended !== null);
    await replaceFile(this.path('index.jsonl'), lines(ended.map(indexRecord)));
    await replaceFile(this.path('summary.jsonl'), lines(summaryRecords(items, datasetRow)));
    await this.writeJson('metrics.json', metrics);
  }
}

/** Keys without a value are left out. */
function indexRecord({ rowIndex, runIndex, ended, kept, isResumed }: EvalItem): unknown {
  const record = {
    ...{ row_index: rowIndex, run_index: runIndex, rollout_id: ended?.rollout_id },
    trajectory_filename: kept?.trajectory_filename,
    ...{ status: ended?.status, reward: ended?.reward, tokens: kept?.tokens },
    ...{ duration_ms: ended?.duration_ms, error_type: ended?.error_type },
    ...(isResumed && { resumed: true }),
  };
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value != null));
}

function summaryRecords(
  items: readonly EvalItem[],
  datasetRow: (rowIndex: number) => number,
): readonly unknown[] {
  return [...Map.groupBy(items, ({ rowIndex }) => rowIndex)].map(([rowIndex, runs]) => {
    const rewards = runs.flatMap(({ ended }) => (ended?.reward == null ? [] : [ended.reward]));
    const count = (status: string): number =>
      runs.filter(({ ended }) => ended?.status === status).length;
    return {
      ...{ row_index: rowIndex, dataset_row: datasetRow(rowIndex), runs: runs.length },
      ...{ success: count('success'), failed: count('failed'), skipped: count('skipped') },
      uncounted: runs.filter(
        (run) => run.ended?.status === 'failed' && standingOf(run) === 'uncounted',
      ).length,
      mean_reward:
        rewards.length === 0
          ? null
          : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
    };
  });
}

function lines(records: readonly unknown[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('');
}
