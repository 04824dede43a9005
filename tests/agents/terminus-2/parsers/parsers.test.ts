import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonParser } from '../../../../src/agents/terminus-2/parsers/json-parser.ts';
import type { ReplyParser } from '../../../../src/agents/terminus-2/parsers/parsed-reply.ts';
import { xmlParser } from '../../../../src/agents/terminus-2/parsers/xml-parser.ts';
import { readCases, type ReplyCase } from './reply-case.ts';
import { textPatterns } from './text-patterns.ts';

const parsers: readonly ReplyParser[] = [jsonParser, xmlParser];
const cases = { json: await readCases('json'), xml: await readCases('xml') };

for (const parser of parsers)
  for (const row of cases[parser.name])
    test(`a ${parser.name} reply: ${row.title}`, () => {
      const { commands, warnings, ...rest } = parser.parse(row.reply);
      assert.deepEqual(rest, {
        isTaskComplete: row.isTaskComplete,
        error: row.error,
        analysis: row.analysis,
        plan: row.plan,
      });
      assert.deepEqual(
        commands,
        row.commands.map(({ keystrokes, durationSec }) => ({
          keystrokes,
          durationSec: Number(durationSec),
        })),
      );
      assert.equal(warnings, row.warnings.map((warning) => `- ${warning}`).join('\n'));
    });

for (const { name } of parsers) {
  test(`every text of the ${name} parser is in its table`, () => {
    const told = cases[name].flatMap(textsOf);
    for (const [key, pattern] of Object.entries(textPatterns[name]))
      assert.ok(
        told.some((text) => pattern.test(text)),
        `no row shows ${key}`,
      );
  });

  test(`every text in the ${name} table is one that the parser declares`, () => {
    const known = Object.values(textPatterns[name]);
    for (const text of cases[name].flatMap(textsOf))
      assert.ok(
        known.some((pattern) => pattern.test(text)),
        text,
      );
  });

  test(`the ${name} table is of use: many rows, each with its own title`, () => {
    const titles = cases[name].map(({ title }) => title);
    assert.ok(titles.length >= 60);
    assert.equal(new Set(titles).size, titles.length);
  });
}

function textsOf(row: ReplyCase): readonly string[] {
  return row.error === '' ? row.warnings : [row.error, ...row.warnings];
}
