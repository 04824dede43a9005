/**
 * A dataset file: checked as a whole, in one reading, before anything is run; afterwards only the places of the chosen rows are held, and each row is
 * read when its turn comes. The digest is of the bytes that were checked. A parquet file is read once more as lines of JSON, and these are looked at.
 */
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { extname } from 'node:path';
import { Problems } from '../../config/problems.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { csvCells } from './csv-cells.ts';
import { parseDatasetJson } from './dataset-json.ts';
import { readRecords, type DatasetRecord } from './records.ts';
import {
  rowColumns,
  RowContract,
  type EvalRow,
  type RawRow,
  type RowMode,
} from './row-contract.ts';

export interface DatasetOptions {
  /** Absolute. */
  readonly file: string;
  readonly mode: RowMode | null;
  /** By the row's place in the file, the first is 0. */
  readonly isChosen: (row: number) => boolean;
  /** At most this many of the chosen. */
  readonly limit: number | null;
  readonly signal: AbortSignal;
}

interface Place {
  readonly datasetRow: number;
  readonly start: number;
  readonly end: number;
}

const maxFileBytes = 5 * 2 ** 30;
/** A request of it has to fit into the body that a server takes. */
const maxRowBytes = 8 * 2 ** 20;
const maxListed = 50;

export class Dataset implements AsyncDisposable {
  readonly file: string;
  readonly mode: RowMode;
  /** Of the whole file, hexadecimal. */
  readonly sha256: string;
  /** Rows of the file. */
  readonly rowCount: number;
  readonly #handle: FileHandle;
  readonly #columns: readonly string[] | null;
  readonly #places: readonly Place[];

  private constructor(
    handle: FileHandle,
    scanned: Scanned & { readonly file: string; readonly places: readonly Place[] },
  ) {
    this.#handle = handle;
    this.file = scanned.file;
    this.mode = scanned.mode;
    this.sha256 = scanned.sha256;
    this.rowCount = scanned.rowCount;
    this.#columns = scanned.csvColumns;
    this.#places = scanned.places;
  }

  /** CONFIG_INVALID lists what is wrong with its rows; DATASET_EMPTY when none is left. */
  static async open(options: DatasetOptions): Promise<Dataset> {
    const { file } = options;
    const kind = kindOf(file);
    let handle = await open(file).catch((error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      throw refuse(
        `${file}: ${code === 'ENOENT' ? 'no such file' : messageOf(error)}`,
        'Name a file that exists and can be read.',
      );
    });
    try {
      if ((await handle.stat()).size > maxFileBytes)
        throw refuse(`${file} is larger than 5 GiB`, 'Split it.');
      let copied: Copied | null = null;
      if (kind === 'parquet') {
        const source = handle;
        copied = await copyParquet(source, options);
        handle = copied.handle;
        await source.close();
      }
      const places: Place[] = [];
      const scanned = await new Scan({ isCsv: kind === 'csv', copied }, options).run(
        handle,
        places,
      );
      if (places.length === 0)
        throw new RolloutError(
          'DATASET_EMPTY',
          scanned.rowCount === 0
            ? `${file} holds no row`
            : `none of its ${scanned.rowCount} rows is chosen`,
          { phase: 'config', field: '--rows', remedy: 'Choose rows that are there.' },
        );
      return new Dataset(handle, { ...scanned, file, places });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Chosen rows. */
  get size(): number {
    return this.#places.length;
  }

  /** The row's place in the file. */
  datasetRow(index: number): number {
    return this.#place(index).datasetRow;
  }

  async row(index: number): Promise<EvalRow> {
    const { start, end } = this.#place(index);
    const bytes = Buffer.alloc(end - start);
    await this.#handle.read(bytes, 0, bytes.length, start);
    const raw = rawRow(textOf(bytes, start), this.#columns);
    let problem = 'problem' in raw ? raw.problem : null;
    const row = new RowContract(this.mode).read('problem' in raw ? {} : raw.row, (column, what) => {
      problem ??= `${column} ${what}`;
    });
    if (problem === null) return row;
    throw refuse(`${this.file} was changed: ${problem}`, 'Leave it as it is while it is used.');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  #place(index: number): Place {
    const place = this.#places[index];
    if (place === undefined) throw new RangeError(`no row ${index}`);
    return place;
  }
}

/** A parquet file as lines of JSON. */
interface Copied {
  readonly handle: FileHandle;
  readonly columns: readonly string[];
  /** Of the file itself. */
  readonly sha256: string;
}

async function copyParquet(
  source: FileHandle,
  { file, signal }: Pick<DatasetOptions, 'file' | 'signal'>,
): Promise<Copied> {
  const hash = createHash('sha256');
  for await (const chunk of source.createReadStream({ start: 0, autoClose: false, signal }))
    hash.update(chunk as Buffer);
  // Loaded only where there is such a file.
  const { parquetLines } = await import('./parquet-lines.ts');
  const lines = await parquetLines(source, { file, wanted: rowColumns, signal });
  return { ...lines, sha256: hash.digest('hex') };
}

interface Scanned {
  readonly mode: RowMode;
  readonly sha256: string;
  readonly rowCount: number;
  /** null = JSONL. */
  readonly csvColumns: readonly string[] | null;
}

class Scan {
  readonly #isCsv: boolean;
  readonly #copied: Copied | null;
  readonly #options: DatasetOptions;
  readonly #problems = new Problems();
  #unlisted = 0;
  #columns: readonly string[] | null = null;
  #contract: RowContract | null = null;
  #mode: RowMode = 'metadata';

  constructor(
    { isCsv, copied }: { readonly isCsv: boolean; readonly copied: Copied | null },
    options: DatasetOptions,
  ) {
    this.#isCsv = isCsv;
    this.#copied = copied;
    this.#options = options;
  }

  async run(handle: FileHandle, places: Place[]): Promise<Scanned> {
    const { isChosen, limit, signal } = this.#options;
    const hash = createHash('sha256');
    if (this.#copied !== null) this.#setColumns(this.#copied.columns);
    const records = readRecords(handle, {
      isCsv: this.#isCsv,
      maxBytes: maxRowBytes,
      onPiece: (piece) => hash.update(piece),
    });
    let rowCount = 0;
    for await (const record of records) {
      signal.throwIfAborted();
      if (this.#isCsv && this.#columns === null) {
        this.#readHeader(record);
        continue;
      }
      this.#check(record, rowCount);
      if (isChosen(rowCount) && (limit === null || places.length < limit))
        places.push({ datasetRow: rowCount, start: record.start, end: record.end });
      rowCount += 1;
    }
    if (this.#unlisted > 0)
      this.#problems.add('dataset', `and ${this.#unlisted} more problems`, 'Correct these first.');
    this.#problems.throwIfAny();
    const csvColumns = this.#isCsv ? this.#columns : null;
    const sha256 = this.#copied?.sha256 ?? hash.digest('hex');
    return { mode: this.#mode, sha256, rowCount, csvColumns };
  }

  #readHeader(record: DatasetRecord): void {
    const cells = record.bytes === null ? null : csvCells(textOf(record.bytes, record.start));
    if (cells === null || 'problem' in cells)
      throw refuse(
        `the header ${cells === null ? 'is too long' : `is not valid: ${cells.problem}`}`,
        'Write the names of the columns into the first line.',
      );
    const seen = new Set<string>();
    const twice = cells.cells.find((name) => seen.size === seen.add(name).size);
    if (twice !== undefined)
      throw refuse(`the column ${JSON.stringify(twice)} is there twice`, 'Rename one of them.');
    this.#setColumns(cells.cells);
  }

  #setColumns(columns: readonly string[]): void {
    this.#columns = columns;
    const has = (name: string): boolean => columns.includes(name);
    this.#mode = this.#options.mode ?? (has('metadata') ? 'metadata' : 'prompt');
    this.#contract = new RowContract(this.#mode);
    const missing =
      this.#mode === 'metadata'
        ? has('metadata') || 'metadata'
        : !has('user_prompt')
          ? 'user_prompt'
          : has('ground_truth') || has('label') || 'ground_truth';
    if (missing === true) return;
    const similar = columns.find((name) => name.trim().toLowerCase() === missing);
    throw refuse(
      `there is no column ${missing}`,
      similar !== undefined
        ? `Rename the column ${JSON.stringify(similar)}.`
        : 'Rows need a column metadata, or user_prompt and ground_truth.',
    );
  }

  #check(record: DatasetRecord, row: number): void {
    const complain = (column: string, problem: string): void => {
      if (this.#problems.found.length >= maxListed) this.#unlisted += 1;
      else
        this.#problems.add(
          this.#copied === null ? `row ${row} (line ${record.line})` : `row ${row}`,
          column === '' ? problem : `${column}: ${problem}`,
          column === '' ? 'Correct the row.' : `Correct ${column} of this row.`,
        );
    };
    if (record.bytes === null) {
      complain('', `is longer than ${maxRowBytes / 2 ** 20} MiB`);
      return;
    }
    const raw = rawRow(textOf(record.bytes, record.start), this.#isCsv ? this.#columns : null);
    if ('problem' in raw) {
      complain('', raw.problem);
      return;
    }
    const columns = Object.keys(raw.row);
    if (this.#columns === null) this.#setColumns(columns);
    else if (!this.#isCsv && this.#copied === null) this.#compareColumns(columns, complain);
    this.#contract?.read(raw.row, complain);
  }

  #compareColumns(
    columns: readonly string[],
    complain: (column: string, problem: string) => void,
  ): void {
    const first = new Set(this.#columns);
    const own = new Set(columns);
    for (const name of first)
      if (!own.has(name)) complain(name, 'is missing here and is in the first row');
    for (const name of own)
      if (!first.has(name)) complain(name, 'is here and is not in the first row');
  }
}

/** One record as values by column; an empty cell of CSV is none. */
function rawRow(
  text: string,
  csvColumns: readonly string[] | null,
): { readonly row: RawRow } | { readonly problem: string } {
  if (csvColumns === null) {
    const parsed = parseDatasetJson(text);
    if ('problem' in parsed) return { problem: 'is no JSON' };
    const { value, tooLarge } = parsed;
    if (tooLarge.length > 0)
      return { problem: `holds a number beyond 64 bits: ${tooLarge.join(', ')}` };
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { problem: 'is no JSON object' };
    return { row: value as RawRow };
  }
  const read = csvCells(text);
  if ('problem' in read) return read;
  const { cells } = read;
  if (cells.length !== csvColumns.length)
    return { problem: `has ${cells.length} cells, the header has ${csvColumns.length}` };
  return {
    row: Object.fromEntries(csvColumns.map((name, at) => [name, (cells[at] ?? '') || null])),
  };
}

/** A mark of the byte order at the beginning of the file is no text. */
function textOf(bytes: Buffer, start: number): string {
  const text = bytes.toString('utf8');
  return start === 0 && text.startsWith('\ufeff') ? text.slice(1) : text;
}

function kindOf(file: string): 'csv' | 'jsonl' | 'parquet' {
  const ending = extname(file).toLowerCase();
  if (ending === '.csv') return 'csv';
  if (ending === '.jsonl' || ending === '.ndjson') return 'jsonl';
  if (ending === '.parquet') return 'parquet';
  throw refuse(`${file}: unknown kind of dataset`, 'Use a .jsonl, .csv or .parquet file.');
}

function refuse(message: string, remedy: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, {
    phase: 'config',
    field: 'experiment.dataset',
    remedy,
  });
}
