import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { collectorBegin } from '../../../src/collector/group-source.ts';
import { readPosition, writePosition } from '../../../src/collector/dataset/position-file.ts';
import { defaultColumns, readDataset } from '../../../src/collector/dataset/read-dataset.ts';
import { never } from '../../../src/core/linked-abort.ts';

const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-dataset-'));
after(() => rmSync(dir, { recursive: true, force: true }));

function file(...lines: readonly string[]): string {
  const name = path.join(dir, `${Math.random()}.jsonl`);
  writeFileSync(name, lines.join('\n'));
  return name;
}

describe('a dataset', () => {
  it('has a row for each object, prompts as text or messages, labels as text', async () => {
    const name = file(
      '{"prompt":"2+2","label":4}',
      '',
      'not JSON',
      '[1]',
      '{"prompt":[{"role":"system","content":"s"}],"label":"x","metadata":{"rm_type":"math"}}',
    );
    const { rows, skippedLines } = await readDataset(name, defaultColumns, never);
    assert.equal(skippedLines, 2);
    assert.deepEqual(rows, [
      { rowIndex: 0, messages: [{ role: 'user', content: '2+2' }], label: '4', metadata: {} },
      {
        ...{ rowIndex: 1, messages: [{ role: 'system', content: 's' }], label: 'x' },
        metadata: { rm_type: 'math' },
      },
    ]);
  });

  const ten = Array.from({ length: 10 }, (_, at) => `{"prompt":"${at}"}`);
  for (const [slice, first, count] of [
    ['', 0, 10],
    ['@[2:5]', 2, 3],
    ['@[:3]', 0, 3],
    ['@[7:]', 7, 3],
    ['@[-2:]', 8, 2],
  ] as const)
    it(`is cut by ${slice || 'nothing'}, and rows keep their numbers`, async () => {
      const { rows } = await readDataset(`${file(...ten)}${slice}`, defaultColumns, never);
      assert.equal(rows.length, count);
      assert.equal(rows[0]?.rowIndex, first);
    });

  for (const { title, name, code } of [
    {
      title: 'a file that is not there',
      name: () => path.join(dir, 'none'),
      code: 'CONFIG_INVALID',
    },
    { title: 'a row without a prompt', name: () => file('{"text":"x"}'), code: 'CONFIG_INVALID' },
    { title: 'nothing', name: () => file('', 'x'), code: 'DATASET_EMPTY' },
    { title: 'a slice of nothing', name: () => `${file(...ten)}@[3:3]`, code: 'DATASET_EMPTY' },
  ])
    it(`refuses ${title}`, async () => {
      await assert.rejects(readDataset(name(), defaultColumns, never), { code });
    });
});

describe('the file of a position', () => {
  it('is the beginning where there is none, and what was written else', async () => {
    const name = path.join(dir, 'position.json');
    assert.deepEqual(await readPosition(name), collectorBegin);
    const position = {
      ...{ dataset: { epoch: 1, offset: 3 }, nextGroupIndex: 9, givenUpRows: [4] },
      fingerprint: 'sha256:1',
      open: [{ groupIndex: 7, rowIndex: 2, epoch: 1, rounds: 0 }],
    };
    await writePosition(name, position);
    await writePosition(name, position);
    assert.deepEqual(await readPosition(name), { slipway_collector: 1, ...position });
  });

  it('is refused where it is something else', async () => {
    await assert.rejects(readPosition(file('{"a":1}')), { code: 'CONFIG_INVALID' });
  });
});
