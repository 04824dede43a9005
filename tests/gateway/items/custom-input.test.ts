import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CustomInput, customArguments } from '../../../src/gateway/items/custom-input.ts';

const other = 'its arguments are not {"input": …}, taken as sampled';
const cut = 'its input is cut off';
const more = 'its arguments hold more than the input, which is left out';

const rows: readonly {
  readonly title: string;
  readonly sampled: string;
  readonly input: string;
  readonly note?: string;
}[] = [
  { title: 'a plain string', sampled: '{"input":"ls"}', input: 'ls' },
  { title: 'white space anywhere', sampled: ' {\n "input" :\t"ls" } ', input: 'ls' },
  { title: 'an empty string', sampled: '{"input":""}', input: '' },
  {
    title: 'all escapes',
    sampled: String.raw`{"input":"\"\\\/\b\f\n\r\té"}`,
    input: '"\\/\b\f\n\r\té',
  },
  {
    title: 'a surrogate pair in escapes',
    sampled: String.raw`{"input":"\ud83d\ude42"}`,
    input: '🙂',
  },
  { title: 'a surrogate half alone', sampled: String.raw`{"input":"\ud83d!"}`, input: '\ud83d!' },
  { title: 'a raw line break', sampled: '{"input":"a\nb"}', input: 'a\nb' },
  {
    title: 'an escape that JSON does not know',
    sampled: String.raw`{"input":"\q\d"}`,
    input: String.raw`\q\d`,
  },
  { title: 'a cut code', sampled: String.raw`{"input":"\u12x"}`, input: String.raw`\u12x` },
  { title: 'plain text', sampled: '*** Begin Patch', input: '*** Begin Patch', note: other },
  { title: 'a JSON string', sampled: '"ls"', input: '"ls"', note: other },
  { title: 'another field', sampled: '{"inputs":"ls"}', input: '{"inputs":"ls"}', note: other },
  {
    title: 'a field before it',
    sampled: '{"a":1,"input":"b"}',
    input: '{"a":1,"input":"b"}',
    note: other,
  },
  {
    title: 'an input that is no string',
    sampled: '{"input":{"a":1}}',
    input: '{"input":{"a":1}}',
    note: other,
  },
  { title: 'an object cut before the string', sampled: '{"inp', input: '{"inp', note: other },
  { title: 'a string cut off', sampled: '{"input":"ls -', input: 'ls -', note: cut },
  { title: 'a string cut in an escape', sampled: '{"input":"a\\u00', input: 'a\\u00', note: cut },
  { title: 'an object that is not closed', sampled: '{"input":"ls"', input: 'ls', note: more },
  { title: 'a field behind it', sampled: '{"input":"ls","why":"so"}', input: 'ls', note: more },
  { title: 'nothing', sampled: '', input: '' },
];

describe('the raw input of a custom tool', () => {
  for (const { title, sampled, input, note = null } of rows)
    it(`of ${title} is the same however it is cut`, () => {
      for (let size = 1; size <= sampled.length + 1; size++) {
        const reader = new CustomInput();
        let got = '';
        for (let from = 0; from < sampled.length; from += size)
          got += reader.push(sampled.slice(from, from + size));
        got += reader.finish();
        assert.equal(got, input);
        assert.equal(reader.note, note);
      }
    });

  it('goes out while it grows', () => {
    const reader = new CustomInput();
    assert.deepEqual(
      ['{"input": "', 'one ', 'two\\', 'n', '"}'].map((piece) => reader.push(piece)),
      ['', 'one ', 'two', '\n', ''],
    );
  });

  it('goes back in as the object that it came out of', () => {
    assert.equal(customArguments('a\n"b"'), '{"input":"a\\n\\"b\\""}');
  });
});
