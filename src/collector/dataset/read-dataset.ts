/**
 * Rows of a JSONL file. A path may end in `@[start:end]`, which takes a slice of its rows. Lines that are no JSON object are skipped and counted; a row whose prompt
 * cannot be used is a mistake that is named, since it would be missing in every epoch.
 */
import { open } from 'node:fs/promises';
import { boundary, RolloutError } from '../../core/errors.ts';
import type { DatasetRow } from './dataset-row.ts';

/** Names of the columns. */
export interface DatasetColumns {
  /** A text, or a list of messages. */
  readonly prompt: string;
  readonly label: string;
  readonly metadata: string;
}

export const defaultColumns: DatasetColumns = {
  ...{ prompt: 'prompt', label: 'label', metadata: 'metadata' },
};

export interface ReadDataset {
  readonly rows: readonly Omit<DatasetRow, 'epoch'>[];
  readonly skippedLines: number;
}

/** CONFIG_INVALID for a file that cannot be read or a row without a prompt, DATASET_EMPTY when nothing is left. */
export async function readDataset(
  pathAndSlice: string,
  columns: DatasetColumns,
  signal: AbortSignal,
): Promise<ReadDataset> {
  const { file, start, end } = sliceOf(pathAndSlice);
  const rows: Omit<DatasetRow, 'epoch'>[] = [];
  let skippedLines = 0;
  let rowIndex = -1;
  await boundary(
    { code: 'CONFIG_INVALID', phase: 'config', what: `reading the dataset ${file}` },
    async () => {
      await using handle = await open(file);
      for await (const line of handle.readLines()) {
        signal.throwIfAborted();
        if (line.trim() === '') continue;
        const document = objectOf(line);
        if (document === null) {
          skippedLines += 1;
          continue;
        }
        rowIndex += 1;
        rows.push(rowOf(document, { rowIndex, columns }));
      }
    },
  );
  return notEmpty({ rows: rows.slice(start, end), skippedLines }, pathAndSlice);
}

/** The same of rows that are there already. */
export function datasetRows(
  documents: readonly Readonly<Record<string, unknown>>[],
  columns: DatasetColumns,
): ReadDataset {
  const rows = documents.map((document, rowIndex) => rowOf(document, { rowIndex, columns }));
  return notEmpty({ rows, skippedLines: 0 }, 'the dataset');
}

function notEmpty(read: ReadDataset, name: string): ReadDataset {
  if (read.rows.length > 0) return read;
  throw new RolloutError('DATASET_EMPTY', `${name} holds no row`, {
    ...{ phase: 'config', field: 'dataset' },
    remedy: 'Name a JSONL file with one object per line, and a slice that is not empty.',
  });
}

/** `slice`: as it is written, empty where there is none. */
export function sliceOf(text: string): {
  readonly file: string;
  readonly slice: string;
  readonly start: number;
  readonly end: number | undefined;
} {
  const found = /^(.*)(@\[(-?\d*):(-?\d*)\])$/s.exec(text);
  if (found === null) return { file: text, slice: '', start: 0, end: undefined };
  const [, file = '', slice = '', start = '', end = ''] = found;
  return { file, slice, start: Number(start), end: end === '' ? undefined : Number(end) };
}

function objectOf(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function rowOf(
  document: Readonly<Record<string, unknown>>,
  { rowIndex, columns }: { readonly rowIndex: number; readonly columns: DatasetColumns },
): Omit<DatasetRow, 'epoch'> {
  const prompt = document[columns.prompt];
  const label = document[columns.label];
  const metadata = document[columns.metadata];
  return {
    rowIndex,
    messages: messagesOf(prompt, { rowIndex, column: columns.prompt }),
    label: label === undefined || label === null ? null : textOf(label),
    metadata: isObject(metadata) ? metadata : {},
  };
}

function messagesOf(
  prompt: unknown,
  { rowIndex, column }: { readonly rowIndex: number; readonly column: string },
): DatasetRow['messages'] {
  if (typeof prompt === 'string') return [{ role: 'user', content: prompt }];
  if (Array.isArray(prompt) && prompt.every(isObject)) return prompt;
  throw new RolloutError('CONFIG_INVALID', `row ${rowIndex} has no prompt`, {
    ...{ phase: 'config', field: column },
    remedy: 'Give it a text or a list of messages under this name, or name another column.',
  });
}

function textOf(label: unknown): string {
  return typeof label === 'string' ? label : JSON.stringify(label);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
