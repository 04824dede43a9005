import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ControlReader,
  unescape,
} from '../../../../src/agents/terminus-2/terminal/control-reader.ts';
import { maxReplyBytes } from '../../../../src/agents/terminus-2/terminal/tmux-commands.ts';

/** What a reader tells of a stream that comes in pieces of `size` bytes. */
function read(stream: string | Buffer, size: number): readonly unknown[] {
  const told: unknown[] = [];
  const reader = new ControlReader({
    onBlock: ({ isOurs, isError, text }) =>
      told.push(['block', isOurs, isError, text.toString('utf8').split('\n').slice(0, -1)]),
    onOutput: (pane, bytes) => told.push(['output', pane, bytes.toString('latin1')]),
    onNotice: (name, rest) => told.push(['notice', name, rest]),
  });
  const bytes = Buffer.from(stream as string);
  for (let at = 0; at < bytes.length; at += size) reader.write(bytes.subarray(at, at + size));
  return told;
}

const rows: readonly [string, string, readonly unknown[]][] = [
  ['a reply without lines', '%begin 1 2 1\n%end 1 2 1\n', [['block', true, false, []]]],
  [
    'a reply keeps its empty lines and its UTF-8',
    '%begin 1 2 1\nžluť 🐧\n\n  x \n%end 1 2 1\n',
    [['block', true, false, ['žluť 🐧', '', '  x ']]],
  ],
  [
    'an error is a reply',
    "%begin 1 2 1\ncan't find pane\n%error 1 2 1\n",
    [['block', true, true, ["can't find pane"]]],
  ],
  [
    'the block of the attaching is told from ours',
    '%begin 1 2 0\n%end 1 2 0\n',
    [['block', false, false, []]],
  ],
  [
    'a screen that shows the protocol does not end its reply',
    '%begin 1 2 1\n%end 1 3 1\n%output %0 x\n%exit\n%begin 9 9 1\n%end 1 2 1\n',
    [['block', true, false, ['%end 1 3 1', '%output %0 x', '%exit', '%begin 9 9 1']]],
  ],
  [
    'output is unescaped',
    '%output %12 a\\033[1m\\134\\015\\012b c\n',
    [['output', '%12', 'a\u001b[1m\\\r\nb c']],
  ],
  [
    'output of a client that pauses carries its age',
    '%extended-output %0 17 : a : b\n',
    [['output', '%0', 'a : b']],
  ],
  ['output may be empty', '%output %0 \n', [['output', '%0', '']]],
  [
    'other notices come with their words',
    '%session-changed $0 my name\n%exit\n%pause %0\n',
    [
      ['notice', 'session-changed', '$0 my name'],
      ['notice', 'exit', ''],
      ['notice', 'pause', '%0'],
    ],
  ],
  ['lines that are no protocol are passed over', 'noise\n\n%exit\n', [['notice', 'exit', '']]],
  ['a line without an end is not told', '%exit', []],
];

describe('the reader of control mode', () => {
  for (const [title, stream, expected] of rows)
    test(`${title}, wherever the bytes are cut`, () => {
      for (const size of [1, 2, 3, 7, 10_000]) assert.deepEqual(read(stream, size), expected);
    });

  test('invalid UTF-8 in output stays as it is', () => {
    const stream = Buffer.from('%output %0 \u00ff\u0080\\000\n', 'latin1');
    assert.deepEqual(read(stream, 1), [['output', '%0', '\u00ff\u0080\u0000']]);
  });

  test('the end of a reply that was not begun breaks the protocol', () => {
    assert.throws(() => read('%end 1 2 1\n', 100), /had not begun/);
  });

  test('of a long reply the end is kept, and no more than that is held', () => {
    const replies: Buffer[] = [];
    const reader = new ControlReader({
      onBlock: ({ text }) => replies.push(Buffer.from(text)),
      onOutput: () => undefined,
      onNotice: () => undefined,
    });
    const lines = Buffer.alloc(64 * 1024, '\n');
    const before = process.memoryUsage();
    reader.write(Buffer.from('%begin 1 2 1\n'));
    for (let written = 0; written < 4 * 1024 * 1024; written += lines.length) reader.write(lines);
    const { rss } = process.memoryUsage();
    reader.write(Buffer.from(`${'x'.repeat(maxReplyBytes - 4)}\nend\n%end 1 2 1\n`));
    assert.ok(rss - before.rss < 100e6, `${rss - before.rss} bytes more`);
    assert.equal(replies[0]?.length, maxReplyBytes);
    assert.equal(replies[0].toString('latin1', maxReplyBytes - 6), 'x\nend\n');
  });

  test('a line that does not end breaks the protocol', () => {
    assert.throws(() => read(Buffer.alloc(5 * 1024 * 1024, 'x'), 64 * 1024), /without an end/);
  });

  test('every byte comes back from its escape', () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    const escaped = [...bytes].map((byte) =>
      byte < 32 || byte === 0x5c
        ? `\\${byte.toString(8).padStart(3, '0')}`
        : String.fromCharCode(byte),
    );
    assert.deepEqual(unescape(Buffer.from(escaped.join(''), 'latin1')), bytes);
  });

  test('what only looks like an escape is left alone', () => {
    for (const text of ['\\', 'a\\9', '\\12', '\\777', '\\x41'])
      assert.equal(unescape(Buffer.from(text)).toString(), text);
  });
});
