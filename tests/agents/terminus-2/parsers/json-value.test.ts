import assert from 'node:assert/strict';
import test from 'node:test';
import {
  JsonComplaint,
  jsonComplaints,
  maxJsonDepth,
  readJson,
} from '../../../../src/agents/terminus-2/parsers/json-value.ts';

const complaints: Readonly<Record<keyof typeof jsonComplaints, [text: string, place: string]>> = {
  value: ['[1, ?]', 'line 1 column 5 (char 4)'],
  propertyName: ['{1: 2}', 'line 1 column 2 (char 1)'],
  colon: ['{"a" 1}', 'line 1 column 6 (char 5)'],
  comma: ['[1 2]', 'line 1 column 4 (char 3)'],
  trailingCommaInObject: ['{"a": 1 , }', 'line 1 column 9 (char 8)'],
  trailingCommaInArray: ['[1,\n]', 'line 1 column 3 (char 2)'],
  controlCharacter: ['"a\u0000"', 'line 1 column 3 (char 2)'],
  escape: ['"💧\\q"', 'line 1 column 3 (char 2)'],
  unicodeEscape: ['"\\u00e"', 'line 1 column 3 (char 2)'],
  unterminated: ['\n ["abc', 'line 2 column 3 (char 3)'],
  extraText: ['{}\n{}', 'line 2 column 1 (char 3)'],
  depth: ['['.repeat(maxJsonDepth + 1), `line 1 column ${maxJsonDepth + 1} (char ${maxJsonDepth})`],
};

for (const [kind, [text, place]] of Object.entries(complaints))
  test(`a JSON text that is wrong is told its place: ${kind}`, () => {
    const message = `${jsonComplaints[kind as keyof typeof jsonComplaints]}: ${place}`;
    assert.throws(() => readJson(text), new JsonComplaint(message));
  });

const wrong = [
  '',
  ' ',
  '-',
  '+1',
  '.5',
  'nul',
  '"a',
  '"\\',
  '"\\u12',
  '{',
  '[',
  '[,]',
  '{,}',
  '\ufeff1',
  '\u00a01',
];

for (const text of wrong)
  test(`no JSON value: ${JSON.stringify(text)}`, () => {
    assert.throws(() => readJson(text), JsonComplaint);
  });

test('what JSON.parse reads is read alike, objects as maps', () => {
  const texts = [
    '0',
    '-0',
    '-1.5e-3',
    '12345678901234567890',
    '"\\u00e9\\ud83d\\udca7\\ud800 \\/ \\b\\f\\n\\r\\t\\"\\\\"',
    '"é💧\u2028"',
    ' [ ] ',
    '[1,[true,false,null],"x"]\r\n\t',
  ];
  for (const text of texts) assert.deepEqual(readJson(text), JSON.parse(text), text);
  const members = readJson('{"a": {"__proto__": 1}, "a": {"__proto__": 2}}');
  assert.deepEqual(members, new Map([['a', new Map([['__proto__', 2]])]]));
});

test('the numbers that JSON cannot write are read as their names', () => {
  assert.deepEqual(readJson('[NaN, Infinity, -Infinity]'), [NaN, Infinity, -Infinity]);
});
