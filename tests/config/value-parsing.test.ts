import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEnvFile } from '../../src/config/env-file.ts';
import { Problems } from '../../src/config/problems.ts';
import { parseLooseMap, parseVariables } from '../../src/config/value-parsing.ts';

const rows: readonly (readonly [text: string, expected: unknown])[] = [
  ['k=[1,2]', [1, 2]],
  ['k=True', true],
  ['k=False', false],
  ['k=None', null],
  ['k=true', true],
  ['k=a=b', 'a=b'],
  ['k= 5 ', 5],
  ['k={"a": 1}', { a: 1 }],
  ['k=', ''],
  ['k="5"', '5'],
  ['k=5s', '5s'],
];

for (const [text, expected] of rows)
  test(`${text} is read as ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseLooseMap([text], '--agent-kwarg', new Problems()), { k: expected });
  });

test('variables stay text', () => {
  const values = ['A=1', 'B=True', 'C= x=y '];
  assert.deepEqual(parseVariables(values, '--agent-env', new Problems()), {
    A: '1',
    B: 'True',
    C: 'x=y',
  });
});

test('an env file knows comments, export and both quotes, and expands nothing', () => {
  const text = [
    '# comment',
    '',
    'A=1',
    'export B = two words  # trailing',
    "C='$A # literal'",
    'D="line\\nnext \\"q\\""',
    'E=',
  ].join('\n');
  assert.deepEqual(parseEnvFile(text, new Problems()), {
    A: '1',
    B: 'two words',
    C: '$A # literal',
    D: 'line\nnext "q"',
    E: '',
  });
});

test('a quoted value of an env file goes over several lines, and a file may begin with a mark', () => {
  const text = '\ufeffKEY="-----BEGIN\r\nabc\n-----END" # mine\nexport B=\'1\n2\'\nC=3';
  assert.deepEqual(parseEnvFile(text, new Problems()), {
    KEY: '-----BEGIN\nabc\n-----END',
    B: '1\n2',
    C: '3',
  });
});

test('a quote that is not closed is named by its line, without what stands in it', () => {
  const problems = new Problems();
  const found = parseEnvFile('A=1\nB="secret\nC=2', problems, '--secrets-file');
  assert.deepEqual(
    problems.found.map(({ field, message }) => [field, message]),
    [['--secrets-file line 2', 'a quote is not closed']],
  );
  assert.deepEqual(found, { A: '1', C: '2' });
});

test('a line of an env file that is no assignment names its number', () => {
  const problems = new Problems();
  parseEnvFile('A=1\nwhat is this', problems);
  assert.deepEqual(
    problems.found.map(({ field }) => field),
    ['--env-file line 2'],
  );
});
