import assert from 'node:assert/strict';
import test from 'node:test';
import { limitOutput } from '../../../../src/agents/terminus-2/observation/limit-output.ts';
import { newOutput } from '../../../../src/agents/terminus-2/observation/new-output.ts';

const note = (bytes: number): string =>
  `\n[... at most 10000 bytes are shown; ${bytes} bytes in the middle are left out ...]\n`;

const limits: readonly [title: string, text: string, expected: string][] = [
  ['an empty text stays', '', ''],
  ['10,000 bytes stay', 'a'.repeat(10_000), 'a'.repeat(10_000)],
  ['10,000 bytes of two-byte characters stay', 'é'.repeat(5_000), 'é'.repeat(5_000)],
  [
    'of 10,001 bytes the middle one goes',
    `${'a'.repeat(5_000)}X${'b'.repeat(5_000)}`,
    `${'a'.repeat(5_000)}${note(1)}${'b'.repeat(5_000)}`,
  ],
  [
    'a character across the first cut goes whole',
    `${'a'.repeat(4_999)}é${'b'.repeat(5_000)}`,
    `${'a'.repeat(4_999)}${note(2)}${'b'.repeat(5_000)}`,
  ],
  [
    'a character across the last cut goes whole',
    `${'a'.repeat(5_000)}💧${'b'.repeat(4_998)}`,
    `${'a'.repeat(5_000)}${note(4)}${'b'.repeat(4_998)}`,
  ],
  [
    'a character that ends at a cut stays',
    `${'a'.repeat(4_996)}💧-💧${'b'.repeat(4_996)}`,
    `${'a'.repeat(4_996)}💧${note(1)}💧${'b'.repeat(4_996)}`,
  ],
  [
    'what is left out is counted in bytes',
    'é'.repeat(10_000),
    `${'é'.repeat(2_500)}${note(10_000)}${'é'.repeat(2_500)}`,
  ],
];

for (const [title, text, expected] of limits)
  test(`limited output: ${title}`, () => {
    assert.equal(limitOutput(text), expected);
  });

const outputs: readonly [
  title: string,
  previous: string | null,
  current: string,
  expected: string | null,
][] = [
  ['the first read has nothing to compare with', null, '$ ', null],
  ['nothing new is nothing', '$ ls\na b\n$ \n', '$ ls\na b\n$ \n', '\n$ \n'],
  [
    'new lines come with the last known line',
    '$ ls\na\n$ ',
    '$ ls\na\n$ pwd\n/app\n$ ',
    '\n$ pwd\n/app\n$ ',
  ],
  ['one known line is repeated whole', '$ \n\n', '$ ls\na\n$ \n', '$ ls\na\n$ \n'],
  ['one known line is found behind others', '$', 'motd\n$ ls', '$ ls'],
  ['an empty history makes everything new', '', 'root:~# ', 'root:~# '],
  ['a blank history makes everything new', '\n \n\n', 'root:~# ', 'root:~# '],
  ['a blank history before blanks is nothing', '\n', '\n\n', null],
  ['a history that is gone is nothing', '$ ls\na\n$', 'cleared\n', null],
  ['a changed last line is nothing', '$ ls\nprogress 10%', '$ ls\nprogress 20%', null],
  ['blanks at the end of the old text do not count', 'a\nb   \n\n\n', 'a\nb\nc', '\nb\nc'],
  [
    'the place is counted in the stripped text, also when the history begins with blanks',
    '\n\n$ a\nb',
    '\n\n$ a\nb\nc',
    ' a\nb\nc',
  ],
  [
    'known text further down still cuts at the place of the old one',
    'a\nb',
    'x\na\nb\nc',
    '\na\nb\nc',
  ],
  ['a part that repeats itself is found', 'aab', 'aaaab', 'aab'],
  ['a shorter history is nothing', 'a\nb\nc\n', 'a\nb\n', null],
  ['wide characters are text like any other', '€ 1\n💧', '€ 1\n💧 2', '\n💧 2'],
];

for (const [title, previous, current, expected] of outputs)
  test(`new output: ${title}`, () => {
    assert.equal(newOutput(previous, current), expected);
  });

test(
  'new output: a text made to slow the search down takes no longer than another',
  { timeout: 10_000 },
  () => {
    const previous = `a\nb\n${'a\n'.repeat(200_000)}a`;
    assert.equal(newOutput(previous, 'a\n'.repeat(1_500_000)), null);
  },
);
