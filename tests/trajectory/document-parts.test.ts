import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parsePart, readParts } from '../../src/trajectory/document-parts.ts';

describe('a trajectory read part by part', () => {
  let dir = '';
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'parts-'));
  });
  after(() => rm(dir, { recursive: true }));

  async function partsOf(text: string): Promise<readonly (readonly [string | null, unknown])[]> {
    const file = path.join(dir, 'document.json');
    await writeFile(file, text);
    const parts: (readonly [string | null, unknown])[] = [];
    for await (const part of readParts(file)) parts.push([part.field, parsePart(file, part)]);
    return parts;
  }

  const rows: readonly (readonly [string, readonly (readonly [string | null, unknown])[]])[] = [
    ['{}', []],
    [' {\n} \n', []],
    ['{"steps":[]}', []],
    ['{"steps": [ ] , "a":1}', [['a', 1]]],
    [
      '{"a":1,"steps":[1, [2,[3]] ,{"x":"]}"}],"b":{"c":[]}}',
      [
        ['a', 1],
        [null, 1],
        [null, [2, [3]]],
        [null, { x: ']}' }],
        ['b', { c: [] }],
      ],
    ],
    [
      '{"a\\"]":"\\\\","b":true ,"c":-1.5e3}',
      [
        ['a"]', '\\'],
        ['b', true],
        ['c', -1500],
      ],
    ],
    ['{"steps":{"steps":[1]}}', [['steps', { steps: [1] }]]],
    ['{"steps":null}', [['steps', null]]],
    ['{"é😀":"ü"}', [['é😀', 'ü']]],
  ];
  for (const [text, expected] of rows)
    test(text, async () => assert.deepEqual(await partsOf(text), expected));

  const broken = [
    ...['', '[]', '5', '{', '{"a"}', '{"a":1', '{"a":1,}', '{,}', '{"a":1}{', '{"a":}', '{a:1}'],
    ...['{"steps":[1', '{"steps":[1,]}', '{"steps":[,1]}', '{"steps":[1 2]}', '{"steps":[1}', 'x'],
    ...['{"a":1]', '{"a":tru}', '{"a" 1}', '{"a":1 "b":2}', '{"a":"x', '{"a":1}x', '{"a"::1}'],
  ];
  for (const text of broken)
    test(`refused: ${text}`, () => assert.rejects(partsOf(text), { code: 'TRAJECTORY_INVALID' }));

  test('parts larger than a read and letters across its end come whole', async () => {
    for (const shift of [0, 1, 2, 3]) {
      const long = 'é😀'.repeat(200_000);
      const text = `{"${'k'.repeat(shift)}":${JSON.stringify(long)},"steps":[${JSON.stringify({ long })}]}`;
      assert.deepEqual(await partsOf(text), [
        ['k'.repeat(shift), long],
        [null, { long }],
      ]);
    }
  });

  test('the golden document has the same parts as its whole', async () => {
    const text = await readFile('tests/golden/atif/valid/rich.json', 'utf8');
    const { steps, ...fields } = JSON.parse(text) as { steps: unknown[] };
    const parts = await partsOf(text);
    assert.deepEqual(
      parts.filter(([field]) => field === null).map(([, value]) => value),
      steps,
    );
    assert.deepEqual(Object.fromEntries(parts.filter(([field]) => field !== null)), fields);
  });
});
