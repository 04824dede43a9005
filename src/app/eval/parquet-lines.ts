/**
 * A parquet file as lines of JSON, row by row in the order of the file: the columns that a row of an evaluation has, and no others. They go into a file that
 * has no name any more when it is used, so that nothing of it stays behind, however the process ends. A row group is decoded at once, whole pages being what
 * the format offers; how large one may be is bounded.
 */
import { randomUUID } from 'node:crypto';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import {
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  type ParquetParsers,
} from 'hyparquet';
import { boundary, messageOf, RolloutError } from '../../core/errors.ts';

export interface ParquetLines {
  /** Of the lines. */
  readonly handle: FileHandle;
  /** Of the parquet file, the read ones and the others. */
  readonly columns: readonly string[];
}

const maxGroupBytes = 2 ** 30;
/** The same value in every row takes no place in the file, but an object each here. */
const maxGroupRows = 2 ** 22;
/** In one string: lines of a group may be far longer than its pages, where many rows hold the same text. */
const maxWriteLength = 2 ** 22;
const trailerBytes = 8;
/** At the end of a file, the second where it is encrypted. */
const marks: readonly string[] = ['PAR1', 'PARE'];
const limit = (outputLength: number) => ({ maxOutputLength: Math.max(outputLength, 1) });

/** What Node brings itself; snappy comes with the reader. */
const compressors: Compressors = {
  GZIP: (input, length) => gunzipSync(input, limit(length)),
  BROTLI: (input, length) => brotliDecompressSync(input, limit(length)),
  ZSTD: (input, length) => zstdDecompressSync(input, limit(length)),
};

const strict = new TextDecoder('utf-8', { fatal: true });

/** Bytes that are no text stay bytes, and are refused with the row that holds them. JSON stays text, which the row contract reads exactly. */
function textOf(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) return undefined;
  try {
    return strict.decode(bytes);
  } catch {
    return bytes;
  }
}

const parsers: Partial<ParquetParsers> = { stringFromBytes: textOf, jsonFromBytes: textOf };

/** CONFIG_INVALID for a file that is none, is damaged, or holds what JSON does not say; DISK_FULL. */
export async function parquetLines(
  source: FileHandle,
  options: {
    readonly file: string;
    readonly wanted: readonly string[];
    readonly signal: AbortSignal;
  },
): Promise<ParquetLines> {
  const { file, wanted, signal } = options;
  const { size } = await source.stat();
  const buffer: AsyncBuffer = {
    byteLength: size,
    slice: (start, end = size) => slice(source, start, end),
  };
  const metadata = await readMetadata(buffer, file);
  const columns = parquetSchema(metadata).children.map(({ element }) => element.name);
  const read = columns.filter((name) => wanted.includes(name));
  const handle = await namelessFile();
  try {
    let row = 0;
    for (const [index, group] of metadata.row_groups.entries()) {
      signal.throwIfAborted();
      checkSize(group, { index, read, file });
      const rowEnd = row + Number(group.num_rows);
      if (read.length === 0 || rowEnd === row) continue;
      const rows = await readable(file, () =>
        parquetReadObjects({
          ...{ file: buffer, metadata, columns: read, rowStart: row, rowEnd },
          ...{ compressors, parsers, geoparquet: false },
        }),
      );
      const lines = linesOf(rows, { file, first: row });
      await boundary({ code: 'INTERNAL', phase: 'config', what: tmpdir() }, () =>
        append(handle, lines, signal),
      );
      row = rowEnd;
    }
    return { handle, columns };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readMetadata(buffer: AsyncBuffer, file: string): Promise<FileMetaData> {
  const end = Buffer.from(await buffer.slice(Math.max(0, buffer.byteLength - trailerBytes)));
  const mark = end.subarray(-4).toString('latin1');
  if (!marks.includes(mark))
    throw refuse(
      `${file} cannot be read as parquet: it does not end like such a file`,
      'Write it again, or give a file of rows another name: .jsonl or .csv.',
    );
  const metadata =
    mark === 'PARE'
      ? null
      : await readable(file, () => parquetMetadataAsync(buffer, { parsers, geoparquet: false }));
  const isEncrypted = metadata?.row_groups.some(({ columns }) =>
    columns.some(
      (column) => column.crypto_metadata !== undefined || column.meta_data === undefined,
    ),
  );
  if (metadata === null || isEncrypted === true)
    throw refuse(`${file} is encrypted`, 'Write it without encryption.');
  return metadata;
}

/** Whatever the reader throws is about the file. */
async function readable<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw refuse(
      `${file} cannot be read as parquet: ${messageOf(error)}`,
      'Write it again, with snappy, gzip, brotli, zstd or no compression, or as .jsonl.',
    );
  }
}

function checkSize(
  group: FileMetaData['row_groups'][number],
  at: { readonly index: number; readonly read: readonly string[]; readonly file: string },
): void {
  const bytes = group.columns
    .filter(({ meta_data: meta }) => at.read.includes(meta?.path_in_schema[0] ?? ''))
    .reduce((sum, { meta_data: meta }) => sum + Number(meta?.total_uncompressed_size ?? 0), 0);
  const tooLarge =
    bytes > maxGroupBytes
      ? 'is larger than 1 GiB'
      : group.num_rows > maxGroupRows
        ? `has more than ${maxGroupRows} rows`
        : null;
  if (tooLarge === null) return;
  throw refuse(
    `${at.file}: row group ${at.index} ${tooLarge}`,
    'Write it with smaller row groups: row_group_size=10000.',
  );
}

function* linesOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  { file, first }: { readonly file: string; readonly first: number },
): Generator<string> {
  for (const [at, row] of rows.entries()) yield lineOf(row, `${file}: row ${first + at}`);
}

async function append(
  handle: FileHandle,
  lines: Iterable<string>,
  signal: AbortSignal,
): Promise<void> {
  let text = '';
  for (const line of lines) {
    text += line;
    if (text.length < maxWriteLength) continue;
    signal.throwIfAborted();
    await handle.appendFile(text);
    text = '';
  }
  await handle.appendFile(text);
}

function lineOf(row: Readonly<Record<string, unknown>>, place: string): string {
  const text = JSON.stringify(row, (key, value: unknown) => {
    if (typeof value === 'bigint') return (JSON as unknown as RawJson).rawJSON(String(value));
    if (value instanceof Uint8Array || (typeof value === 'number' && !Number.isFinite(value)))
      throw refuse(
        `${place}: ${key} holds ${typeof value === 'number' ? String(value) : 'bytes that are no text'}`,
        'Write a text, a finite number, or nothing there.',
      );
    return value ?? null;
  });
  return `${text}\n`;
}

interface RawJson {
  rawJSON(text: string): unknown;
}

async function slice(source: FileHandle, start: number, end: number): Promise<ArrayBuffer> {
  const length = Math.max(0, end - start);
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await source.read(bytes, filled, length - filled, start + filled);
    if (bytesRead === 0) throw new Error('it is shorter than it says');
    filled += bytesRead;
  }
  return bytes.buffer;
}

async function namelessFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `slipway-rows-${randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  await rm(path);
  return handle;
}

function refuse(message: string, remedy: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    phase: 'config',
    field: 'experiment.dataset',
    remedy,
  });
}
