/** Datasets in parquet, as pyarrow writes them: `parquet/make.py` made the files. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Dataset, type DatasetOptions } from '../../../src/app/eval/dataset.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { slipwayInProcess } from '../../support/in-process-cli.ts';

const fixtures = path.join(import.meta.dirname, 'parquet');
let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-parquet-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function open(file: string, options: Partial<DatasetOptions> = {}): Promise<Dataset> {
  const all = { mode: null, isChosen: () => true, limit: null, signal: never };
  return await Dataset.open({ ...all, file: path.resolve(fixtures, file), ...options });
}

async function rowsOf(file: string): Promise<readonly unknown[]> {
  await using dataset = await open(file);
  const rows: unknown[] = [];
  // As the body of a request has them: whole numbers with all their digits.
  for (let at = 0; at < dataset.size; at += 1) rows.push(JSON.stringify(await dataset.row(at)));
  return rows;
}

const prompts = [
  '{"messages":[{"role":"user","content":"1+1"}],"label":"2","metadata":null}',
  '{"messages":[{"role":"user","content":"2+2"}],"label":"4","metadata":null}',
];

describe('a dataset in parquet', { timeout: 240_000 }, () => {
  it('keeps the order of its rows, and what JSON says of their values', async () => {
    const day = '2026-02-03T04:05:06.789Z';
    assert.deepEqual(await rowsOf('types.parquet'), [
      `{"messages":[],"label":null,"metadata":{"name":"first","whole":9007199254740993,"small":1,"ratio":0.5,"on":true,"tags":["a","é"],"inner":{"depth":3},"when":"${day}","day":"2026-02-03T00:00:00.000Z","price":12.25,"counts":{"a":1}}}`,
      '{"messages":[{"role":"system","content":"be brief"}],"label":null,"metadata":{"name":"second","whole":-9223372036854775808,"small":null,"ratio":null,"on":false,"tags":[],"inner":{"depth":null},"when":null,"day":null,"price":null,"counts":null}}',
      `{"messages":[],"label":null,"metadata":{"name":"third","whole":7,"small":-7,"ratio":1e+300,"on":null,"tags":null,"inner":{"depth":0},"when":"${day}","day":null,"price":-0.1,"counts":{"b":2,"c":3}}}`,
    ]);
  });

  it('reads columns of JSON exactly', async () => {
    const [first] = await rowsOf('json.parquet');
    assert.equal(first, '{"messages":[],"label":null,"metadata":{"whole":9007199254740993}}');
  });

  for (const codec of ['none', 'gzip', 'brotli', 'zstd'])
    it(`is read with the compression ${codec}`, async () => {
      assert.deepEqual(await rowsOf(`${codec}.parquet`), prompts);
    });

  it('takes text that is not marked as one', async () => {
    assert.match(String((await rowsOf('plain-bytes.parquet'))[0]), /"label":"b"/);
  });

  it('is chosen from by the places of its rows, over its row groups', async () => {
    await using dataset = await open('many.parquet', { isChosen: (row) => row % 40 === 39 });
    assert.deepEqual([dataset.rowCount, dataset.size], [100, 2]);
    assert.equal(dataset.datasetRow(1), 79);
    assert.equal((await dataset.row(1)).label, '4');
    await using limited = await open('many.parquet', { limit: 3 });
    assert.equal(limited.size, 3);
  });

  it('leaves no file behind, also while it is used', async () => {
    const [before, temporary] = [process.env['TMPDIR'], path.join(root, 'tmp')];
    await mkdir(temporary);
    process.env['TMPDIR'] = temporary;
    try {
      await using dataset = await open('none.parquet');
      assert.equal(dataset.size, 2);
      assert.deepEqual(await readdir(temporary), []);
    } finally {
      if (before === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = before;
    }
  });

  const refused: readonly (readonly [what: string, file: string, said: RegExp])[] = [
    ['with a whole number beyond 64 bits', 'unsigned', /CONFIG_INVALID \[row 0\]: holds a number beyond 64 bits: n/],
    ['with a number that is none', 'nan', /\[experiment\.dataset\]: .*nan\.parquet: row 1: n holds NaN/],
    ['with bytes where a text should be', 'bytes', /bytes\.parquet: row 0: label holds bytes that are no text/],
    ['with a column whose name is nearly right', 'columns', /no column user_prompt — Rename the column "User_Prompt"/],
    ['without rows', 'empty', /DATASET_EMPTY/],
    ['that is encrypted', 'encrypted', /encrypted\.parquet is encrypted — Write it without encryption/],
    ['whose columns are encrypted', 'encrypted-columns', /encrypted-columns\.parquet is encrypted —/],
    ['with a compression that is not read', 'lz4', /lz4\.parquet cannot be read as parquet: .*LZ4.* — Write it again, with snappy, gzip/],
  ]; // prettier-ignore
  for (const [what, file, said] of refused)
    it(`${what} is refused`, async () => {
      assert.match(await refusalOf(path.join(fixtures, `${file}.parquet`)), said);
    });

  const damages: readonly (readonly [what: string, (bytes: Buffer) => Buffer])[] = [
    ['is cut off', (bytes) => bytes.subarray(0, -20)],
    ['lacks its middle', (bytes) => Buffer.concat([bytes.subarray(0, 10), bytes.subarray(80)])],
    ['has other bytes where its pages are', (bytes) => Buffer.from(bytes).fill(0xff, 4, 60)],
    [
      'says that its end is longer than the file',
      (bytes) => Buffer.from(bytes).fill(0x7f, bytes.length - 8, bytes.length - 4),
    ],
    ['is none', () => Buffer.from('user_prompt,label\n1,2\n')],
    ['is no more than its marks', () => Buffer.from('PAR1PAR1')],
    ['is empty', () => Buffer.alloc(0)],
  ];
  it('that has no mark at its end is told as no such file', async () => {
    const file = path.join(root, 'rows.parquet');
    await writeFile(file, 'user_prompt,label\n1,2\n');
    assert.match(await refusalOf(file), /does not end like such a file — .*\.jsonl or \.csv/);
  });

  for (const [index, [what, damage]] of damages.entries())
    it(`that ${what} is refused by its name`, async () => {
      const file = path.join(root, `damaged-${index}.parquet`);
      await writeFile(file, damage(await readFile(path.join(fixtures, 'gzip.parquet'))));
      const said = await refusalOf(file);
      assert.match(said, /^CONFIG_INVALID \[experiment\.dataset\]: /);
      assert.match(said, /damaged-\d\.parquet cannot be read as parquet: .* — Write it again/);
    });

  for (const [what, rows] of [
    ['more rows than are held at once', 2 ** 22 + 1],
    ['more rows than there can be', 2 ** 40],
  ] as const)
    it(`of a few bytes that says that it has ${what} is refused before they are made`, async () => {
      const file = path.join(root, `rows-${rows}.parquet`);
      await writeFile(
        file,
        withRowCount(await readFile(path.join(fixtures, 'none.parquet')), rows),
      );
      assert.match(await refusalOf(file), /: row group 0 has more than 4194304 rows — /);
    });

  it('is evaluated like every other', async () => {
    await copyFile(path.join(fixtures, 'none.parquet'), path.join(root, 'rows.parquet'));
    const toml = '[experiment]\ndataset = "rows.parquet"\n[backend]\nkind = "null"\n';
    await writeFile(path.join(root, 'e.toml'), toml);
    const { exitCode, stdout, stderr } = await slipwayInProcess(
      ['eval', 'run', 'e.toml', '--yes'],
      {
        ...{ cwd: root, variables: { HOME: root, SLIPWAY_STATE_DIR: path.join(root, 'state') } },
      },
    );
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /2 of 2 runs ended/);
  });
});

/** Its one row group says so; it has two rows. */
function withRowCount(bytes: Buffer, rows: number): Buffer {
  const end = bytes.length - 8;
  const footer = end - bytes.readUInt32LE(end);
  // A field of 64 bits that is 2: the last one is that of the row group.
  const at = bytes.subarray(0, end).lastIndexOf(Buffer.from([0x16, 0x04])) + 1;
  const count: number[] = [];
  for (let left = BigInt(rows) * 2n; left > 0n || count.length === 0; left >>= 7n)
    count.push(Number(left & 127n) | (left > 127n ? 128 : 0));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(end - footer + count.length - 1);
  const after = bytes.subarray(at + 1, end);
  return Buffer.concat([
    bytes.subarray(0, at),
    Buffer.from(count),
    after,
    length,
    Buffer.from('PAR1'),
  ]);
}

async function refusalOf(file: string): Promise<string> {
  try {
    await using dataset = await open(file);
    return `taken: ${dataset.size}`;
  } catch (error) {
    assert.ok(error instanceof RolloutError, String(error));
    return error.describe();
  }
}
