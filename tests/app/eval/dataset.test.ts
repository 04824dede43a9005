import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Dataset, type DatasetOptions } from '../../../src/app/eval/dataset.ts';
import { readRowSelection } from '../../../src/app/eval/row-selection.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-rows-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function read(
  name: string,
  text: string | Buffer,
  options: Partial<DatasetOptions> = {},
): Promise<Dataset> {
  const file = path.join(root, name);
  await writeFile(file, text);
  const all = { mode: null, isChosen: () => true, limit: null, signal: never };
  return await Dataset.open({ ...all, file, ...options });
}

const jsonl = (...rows: readonly unknown[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

async function problemsOf(work: Promise<Dataset>): Promise<string> {
  try {
    await using dataset = await work;
    return `taken: ${dataset.size}`;
  } catch (error) {
    assert.ok(error instanceof RolloutError, String(error));
    assert.equal(error.code, 'CONFIG_INVALID');
    return `${error.describe()}\n${error.detail ?? ''}`;
  }
}

describe('a dataset of rows', () => {
  it('in metadata mode gives metadata, with prompts where there are some', async () => {
    await using dataset = await read(
      'a.jsonl',
      jsonl(
        { metadata: { harbor_task: './a' }, user_prompt: null, label: null },
        { metadata: '{"harbor_task": "./b"}', user_prompt: 'do', label: 'x' },
      ),
    );
    assert.equal(dataset.mode, 'metadata');
    assert.deepEqual(await dataset.row(0), {
      ...{ messages: [], label: null, metadata: { harbor_task: './a' } },
    });
    assert.deepEqual(await dataset.row(1), {
      messages: [{ role: 'user', content: 'do' }],
      ...{ label: 'x', metadata: { harbor_task: './b' } },
    });
  });

  it('in prompt mode gives messages and the ground truth, which wins over the label', async () => {
    await using dataset = await read(
      'b.csv',
      'system_prompt,user_prompt,ground_truth,label,other\r\n' +
        'be brief,"say ""hi"",\nplease",42,7,z\r\n,two,,8,\r\n',
    );
    assert.equal(dataset.mode, 'prompt');
    assert.deepEqual(await dataset.row(0), {
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'say "hi",\nplease' },
      ],
      ...{ label: '42', metadata: null },
    });
    assert.deepEqual(await dataset.row(1), {
      messages: [{ role: 'user', content: 'two' }],
      ...{ label: '8', metadata: null },
    });
  });

  it('keeps every digit of whole numbers', async () => {
    const big = '9007199254740993';
    await using dataset = await read('c.jsonl', `{"metadata": {"seed": ${big}}}\n`);
    assert.equal(JSON.stringify((await dataset.row(0)).metadata), `{"seed":${big}}`);
  });

  it('chooses rows by their place, in the order of the file', async () => {
    const rows = Array.from({ length: 30 }, (_, n) => ({ metadata: { n } }));
    const text = `\ufeff${jsonl(...rows)}`;
    await using chosen = await read('d.jsonl', text, { isChosen: readRowSelection('7, 3,10-12') });
    assert.equal(chosen.rowCount, 30);
    const numbers = [0, 1, 2, 3, 4].map((index) => chosen.datasetRow(index));
    assert.deepEqual([chosen.size, numbers], [5, [3, 7, 10, 11, 12]]);
    assert.deepEqual((await chosen.row(1)).metadata, { n: 7 });
    await using limited = await read('d.jsonl', text, { limit: 2 });
    assert.deepEqual([limited.size, (await limited.row(0)).metadata], [2, { n: 0 }]);
    await assert.rejects(read('d.jsonl', text, { isChosen: () => false }), {
      code: 'DATASET_EMPTY',
    });
    await assert.rejects(read('e.jsonl', '\n\n'), { code: 'DATASET_EMPTY' });
    for (const wrong of ['', '3,', 'a', '5-3', '-1', '1.5'])
      assert.throws(() => readRowSelection(wrong), { code: 'CONFIG_INVALID', field: '--rows' });
  });

  it('reads rows that lie across pieces of the file', async () => {
    const rows = Array.from({ length: 5 }, (_, n) => ({
      metadata: { n, text: `${'ä'.repeat(400_000)}${n}` },
    }));
    await using dataset = await read('f.jsonl', jsonl(...rows));
    for (const [n, row] of rows.entries())
      assert.deepEqual((await dataset.row(n)).metadata, row.metadata);
  });

  const wrong: readonly (readonly [what: string, name: string, text: string, said: RegExp])[] = [
    ['no object', 'w.jsonl', '[1]\n', /row 0 \(line 1\).*is no JSON object/],
    [
      'no JSON',
      'w.jsonl',
      '{"metadata": {"a": 1}}\n\n{"metadata": \n',
      /row 1 \(line 3\).*no JSON/,
    ],
    ['no metadata', 'w.jsonl', jsonl({ metadata: null }), /metadata: is missing or blank/],
    ['blank metadata', 'w.jsonl', jsonl({ metadata: ' ' }), /metadata: is missing or blank/],
    ['empty metadata', 'w.jsonl', jsonl({ metadata: {} }), /metadata: is an empty object/],
    ['metadata in a text that is none', 'w.jsonl', jsonl({ metadata: '[1]' }), /expected a JSON object, found a list/], // prettier-ignore
    ['an empty object within', 'w.jsonl', jsonl({ metadata: { a: { b: {} } } }), /metadata\.a\.b: is an empty object/], // prettier-ignore
    ['another kind of value', 'w.jsonl', jsonl({ metadata: { a: 1 } }, { metadata: { a: '1' } }), /row 1.*metadata\.a: is a string here and a number/], // prettier-ignore
    ['a number beyond 64 bits', 'w.jsonl', '{"metadata": {"a": 9223372036854775808}}\n', /beyond 64 bits: a/], // prettier-ignore
    ['other columns', 'w.jsonl', jsonl({ metadata: { a: 1 }, x: 1 }, { metadata: { a: 1 }, y: 1 }), /x: is missing here[^]*y: is here/], // prettier-ignore
    ['no columns of the contract', 'w.jsonl', jsonl({ prompt: 'x' }), /no column user_prompt/],
    ['columns in other letters', 'w.csv', 'User_Prompt,label\na,b\n', /Rename the column "User_Prompt"/], // prettier-ignore
    ['no ground truth', 'w.csv', 'user_prompt,label\na,\n', /ground_truth: is missing or blank/],
    ['no prompt', 'w.csv', 'user_prompt,label\n" ",b\n', /user_prompt: is blank/],
    ['too few cells', 'w.csv', 'user_prompt,label\na\n', /has 1 cells, the header has 2/],
    ['an open quote', 'w.csv', 'user_prompt,label\n"a,b\n', /quoted cell is not closed/],
    ['a column twice', 'w.csv', 'label,label\na,b\n', /"label" is there twice/],
    ['what is no parquet', 'w.parquet', 'PAR1', /cannot be read as parquet/],
    ['another ending', 'w.txt', 'x', /\.jsonl, \.csv or \.parquet/],
  ];
  for (const [what, name, text, said] of wrong)
    it(`refuses ${what}, with its row`, async () => {
      assert.match(await problemsOf(read(name, text)), said);
    });

  it('names every wrong row at once, and does not list without end', async () => {
    const said = await problemsOf(
      read('many.jsonl', jsonl(...Array.from({ length: 70 }, () => ({ metadata: {} })))),
    );
    assert.match(said, /\[row 0 \(line 1\)\]/);
    assert.match(said, /\[row 49 \(line 50\)\]/);
    assert.match(said, /and 20 more problems/);
  });

  it('refuses a row that does not fit into a request', async () => {
    const text = `{"metadata": {"a": "${'x'.repeat(8 * 2 ** 20)}"}}\n{"metadata": {"a": "y"}}\n`;
    const said = await problemsOf(read('long.jsonl', text));
    assert.match(said, /row 0 \(line 1\)\]: is longer than 8 MiB/);
    assert.doesNotMatch(said, /row 1/);
  });

  it('does not compare each of very many columns with each', { timeout: 60_000 }, async () => {
    const names = Array.from({ length: 300_000 }, (_, at) => `c${at}`);
    const said = await problemsOf(read('wide.csv', `metadata,${names.join(',')},c0\n`));
    assert.match(said, /"c0" is there twice/);
  });
});
