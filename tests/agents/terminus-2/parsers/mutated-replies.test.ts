import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonParser } from '../../../../src/agents/terminus-2/parsers/json-parser.ts';
import { xmlParser } from '../../../../src/agents/terminus-2/parsers/xml-parser.ts';
import { seededRandom } from '../../../support/random.ts';
import { readCases } from './reply-case.ts';
import { textPatterns } from './text-patterns.ts';

const replies = 4_000;

for (const parser of [jsonParser, xmlParser])
  test(`${replies} mutated ${parser.name} replies: no throw, only declared texts, nothing is executed beside an error`, async () => {
    const originals = (await readCases(parser.name)).map(({ reply }) => reply);
    const known = Object.values(textPatterns[parser.name]);
    const random = seededRandom(20);
    const below = (count: number): number => Math.floor(random() * count);
    const pick = (): string => originals[below(originals.length)] ?? '';
    for (let count = 0; count < replies; count++) {
      let reply = pick();
      for (let cut = 0; cut <= below(3); cut++) {
        const other = pick();
        const start = below(other.length);
        const at = below(reply.length + 1);
        const piece = other.slice(start, start + below(30));
        reply = reply.slice(0, at) + piece + reply.slice(at + below(20));
      }
      const { error, warnings, commands, isTaskComplete } = parser.parse(reply);
      const told = error === '' ? [] : [error];
      // A piece of the reply that a text quotes may hold line breaks.
      told.push(...warnings.replace(/^- /, '').split(/\n- (?=[A-Z])/));
      for (const text of told)
        assert.ok(text === '' || known.some((pattern) => pattern.test(text)), `${text} ← ${reply}`);
      if (error !== '') assert.ok(commands.length === 0 && !isTaskComplete, reply);
      for (const { keystrokes, durationSec } of commands)
        assert.ok(typeof keystrokes === 'string' && !Number.isNaN(durationSec), reply);
      const salvaged = parser.salvage(reply);
      if (salvaged !== null) assert.equal(parser.parse(salvaged).error, '', reply);
    }
  });
