import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LineReader } from '../../src/core/line-reader.ts';
import { PrintedText } from '../../src/runner/printed-text.ts';

function linesOf(maxBytes: number, chunks: readonly string[]) {
  const lines: string[] = [];
  let overflows = 0;
  const reader = new LineReader(
    maxBytes,
    (line) => lines.push(line),
    () => (overflows += 1),
  );
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  return { lines, overflows };
}

describe('lines of a runner', () => {
  const cases: readonly (readonly [
    string,
    number,
    readonly string[],
    readonly string[],
    number,
  ])[] = [
    ['come whole from pieces', 9, ['on', 'e\ntwo\nth', 'ree', '\n'], ['one', 'two', 'three'], 0],
    ['may be as long as allowed', 3, ['one\ntwo\n'], ['one', 'two'], 0],
    ['end everything when one is longer', 3, ['one\nfo', 'ur', '\nsix\n'], ['one'], 1],
    ['wait for their end', 9, ['one\ntw'], ['one'], 0],
  ];
  for (const [title, maxBytes, chunks, lines, overflows] of cases)
    it(title, () => assert.deepEqual(linesOf(maxBytes, chunks), { lines, overflows }));
});

describe('what a runner prints', () => {
  const mark = '\0mark:1\0';

  it('comes without marks, however they are cut', () => {
    const whole = Buffer.from(`€ before${mark}after \0 and \0mark:x\0`);
    for (let at = 0; at <= whole.length; at += 1) {
      let said = '';
      const printed = new PrintedText('mark', (text) => (said += text));
      printed.push(whole.subarray(0, at));
      printed.push(whole.subarray(at));
      printed.end();
      assert.equal(said, '€ beforeafter \0 and \0mark:x\0', `cut at ${at}`);
    }
  });

  it('is heard before its order has ended', async () => {
    let said = '';
    const printed = new PrintedText('mark', (text) => (said += text));
    const heard = printed.heard(1).then(() => said);
    printed.push(Buffer.from('all of it'));
    printed.push(Buffer.from(mark));
    assert.equal(await heard, 'all of it');
    await printed.heard(1);
  });

  it('is not waited for when nothing comes any more', async () => {
    const printed = new PrintedText('mark', () => undefined);
    const heard = printed.heard(7);
    printed.end();
    await heard;
  });
});
