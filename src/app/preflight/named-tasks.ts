/** The tasks that are checked: those of `--task`, of a dataset's rows and of prewarm, each distinct one once. */
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { labelOf } from '../../backends/native/prewarm-tasks.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { TrialSettings } from './trial-settings.ts';

/** A reference as somebody wrote it; what is wrong with it is told when it is looked for. */
export interface NamedTask {
  /** Without an address, which may hold a credential. */
  readonly label: string;
  readonly entry: TaskEntry | RolloutError;
  readonly warnings: readonly string[];
}

export interface TaskSources {
  readonly references: readonly string[];
  /** Absolute; null = none. */
  readonly datasetFile: string | null;
  readonly cwd: string;
}

/** CONFIG_INVALID for a dataset that cannot be read. */
export async function namedTasks(
  { references, datasetFile, cwd }: TaskSources,
  settings: TrialSettings,
): Promise<readonly NamedTask[]> {
  const rows = datasetFile === null ? [] : await datasetRows(datasetFile);
  const found = [
    ...(await Promise.all(references.map((text) => referenced(text, cwd, settings)))),
    ...(await Promise.all(rows.map((row, index) => named(row, `row ${index}`, settings)))),
    ...(await Promise.all(
      settings.ownRows.map(({ label, metadata }) => named(metadata, label, settings)),
    )),
    ...settings.ownTasks.map((entry) => ({ label: labelOf(entry), entry, warnings: [] })),
  ];
  // Rows that name no task are told one by one; a task that many rows name is looked at once.
  return [...new Map(found.map((task) => [keyOf(task), task])).values()];
}

function keyOf({ label, entry }: NamedTask): string {
  return entry instanceof RolloutError ? `${label} ${entry.message}` : JSON.stringify(entry);
}

/** As in `metadata.harbor_task`, a folder that is there, or a whole metadata object. Folders of a flag begin where it is written; those of metadata where a row's do. */
async function referenced(text: string, cwd: string, settings: TrialSettings): Promise<NamedTask> {
  if (text.startsWith('{')) return await named(parsed(text), text.slice(0, 60), settings);
  const folder = path.resolve(cwd, text);
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const isPath = text.startsWith('.') || (isFolder && !/^[/~]/.test(text));
  return await named({ [settings.taskKey]: isPath ? folder : text }, text, settings);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

async function named(
  metadata: unknown,
  fallback: string,
  settings: TrialSettings,
): Promise<NamedTask> {
  const given =
    typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)
      ? (metadata as Readonly<Record<string, unknown>>)
      : null;
  try {
    const { entry, warnings } = await settings.taskOf(given);
    return { label: labelOf(entry), entry, warnings };
  } catch (error) {
    if (!isRolloutError(error)) throw error;
    return { label: fallback, entry: error, warnings: [] };
  }
}

/** Metadata of the rows of a JSON list, or of JSON lines. */
async function datasetRows(file: string): Promise<readonly unknown[]> {
  const refuse = (message: string): RolloutError =>
    new RolloutError('CONFIG_INVALID', `${file}: ${message}`, {
      phase: 'config',
      field: '--dataset',
      remedy: 'Name a file of JSON lines, or of a JSON list, with an object per row.',
    });
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    throw refuse(code === 'ENOENT' ? 'no such file' : messageOf(error));
  });
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const rows: unknown[] = text.trimStart().startsWith('[')
    ? listOf(parsed(text), refuse)
    : lines.map((line, index) => {
        const row = parsed(line);
        if (row === null) throw refuse(`row ${index} is no JSON (the first is 0)`);
        return row;
      });
  return rows.map((row) => {
    const metadata = (row as { readonly metadata?: unknown } | null)?.metadata;
    return typeof metadata === 'string' ? parsed(metadata) : metadata;
  });
}

function listOf(value: unknown, refuse: (message: string) => RolloutError): unknown[] {
  if (!Array.isArray(value)) throw refuse('is no list');
  return value as unknown[];
}
