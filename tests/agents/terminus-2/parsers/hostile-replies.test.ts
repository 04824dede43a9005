import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonParser } from '../../../../src/agents/terminus-2/parsers/json-parser.ts';
import { xmlParser } from '../../../../src/agents/terminus-2/parsers/xml-parser.ts';

const size = 1_000_000;
const ceilingMs = 10_000;
const fill = (piece: string): string => piece.repeat(Math.ceil(size / piece.length));
const around = (attributes: string): string =>
  `<response><commands><keystrokes ${attributes}>x</keystrokes></commands></response>`;

const jsonReplies: Readonly<Record<string, string>> = {
  'opening braces': fill('{'),
  'closing braces': fill('}'),
  'opening brackets': `{"a":${fill('[')}`,
  'objects in objects': fill('{"a":'),
  'pairs of braces in one that is open': `{${fill('{}')}`,
  'pairs of braces between two that are open': fill('{{}{}{'),
  'objects that are no JSON': fill('{x}'),
  'long objects that are no JSON': fill(`{${'x'.repeat(5_000)}}`),
  backslashes: `{"${fill('\\')}`,
  quotes: fill('"'),
  'names without a colon': `{${fill('"analysis" ')}}`,
  'blanks behind names': `{${fill(`"plan"${' '.repeat(1_000)}`)}}`,
  blanks: fill(' '),
  'lines in front of a mistake': `{${fill('\n')}x}`,
  digits: `{"a":${fill('1')}}`,
  'one long text': `{"a":"${fill('é')}"}`,
};

const xmlReplies: Readonly<Record<string, string>> = {
  'responses that open': fill('<response>'),
  'responses that open, and one end': `${fill('<response>')}</response>x`,
  'keystrokes that open': `<response><commands>${fill('<keystrokes')}</commands>`,
  'keystrokes that open with an end': `<response><commands>${fill('<keystrokes>')}</commands>`,
  'tags without an end': `<response>${fill('<')}`,
  'tags with blanks': `<response>${fill('<analysis ')}`,
  'names with blanks behind': `<response>${fill(`<plan${' '.repeat(1_000)}`)}`,
  'task_complete with blanks': `<response>${fill(`<task_complete>${' '.repeat(1_000)}`)}`,
  'sections that open': `<response>${fill('<commands>')}`,
  'sections that end': `<response>${fill('</commands>')}</response>`,
  'a long attribute name': around(fill('a')),
  'blanks in attributes': around(fill(' ')),
  'attribute names without a value': around(fill('a=')),
  'equal signs': around(fill('=')),
  'single quotes': around(fill("a='")),
  'duration again and again': around(fill('duration')),
  'duration with blanks': around(fill(`duration${' '.repeat(1_000)}`)),
  'duration with a quote': around(fill('duration="')),
  'digits and underscores': around(`duration="${fill('1_')}"`),
  'blanks in a duration': around(`duration="${fill(' ')}x"`),
  entities: around(`>${fill('&lt;')}`),
};

for (const [title, reply] of Object.entries(jsonReplies))
  test(`a hostile JSON reply of a megabyte is read in bounded time: ${title}`, () => {
    let error = '';
    const parse = (): void => {
      error = jsonParser.parse(reply).error;
    };
    assert.ok(cpuMillisecondsOf(parse) < ceilingMs);
    assert.notEqual(error, '');
  });

for (const [title, reply] of Object.entries(xmlReplies))
  test(`a hostile XML reply of a megabyte is read in bounded time: ${title}`, () => {
    const parse = (): unknown => [xmlParser.parse(reply), xmlParser.salvage(reply)];
    assert.ok(cpuMillisecondsOf(parse) < ceilingMs);
  });

/** Of this process, so that other work on the machine does not count. */
function cpuMillisecondsOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
