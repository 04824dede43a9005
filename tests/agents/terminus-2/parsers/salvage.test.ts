import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonParser } from '../../../../src/agents/terminus-2/parsers/json-parser.ts';
import { xmlParser } from '../../../../src/agents/terminus-2/parsers/xml-parser.ts';
import { readCases } from './reply-case.ts';

const complete =
  '<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration="1">ls\n</keystrokes></commands></response>';

const rows: readonly [title: string, reply: string, expected: string | null][] = [
  ['a complete response before text that was cut off', `${complete}\nNow I wi`, complete],
  ['text in front stays', `Well: ${complete} and`, `Well: ${complete}`],
  ['a second response that was cut off is no matter', `${complete}\n<response><ana`, complete],
  ['commands that end, in a response that does not', complete.slice(0, -1), null],
  ['commands that do not end', complete.slice(0, complete.indexOf('</commands>')), null],
  ['two commands sections', complete.replace('<commands>', '<commands/><commands>'), null],
  ['a response without a beginning', complete.slice('<response>'.length), null],
  [
    'a warning that quotes the words about several sections',
    complete.replace('<plan>', '<only issue one block at a time/><plan>'),
    complete.replace('<plan>', '<only issue one block at a time/><plan>'),
  ],
  ['nothing', '', null],
];

for (const [title, reply, expected] of rows)
  test(`salvaged of a cut XML reply: ${title}`, () => {
    assert.equal(xmlParser.salvage(reply), expected);
  });

test('what is salvaged of the XML table parses without an error and is where the table says so', async () => {
  for (const { title, reply, salvaged } of await readCases('xml')) {
    const prefix = xmlParser.salvage(reply);
    assert.equal(prefix !== null, salvaged, title);
    if (prefix === null) continue;
    assert.ok(reply.startsWith(prefix), title);
    assert.equal(xmlParser.parse(prefix).error, '', title);
  }
});

test('nothing is salvaged of a cut JSON reply', async () => {
  for (const { reply } of await readCases('json')) assert.equal(jsonParser.salvage(reply), null);
});
