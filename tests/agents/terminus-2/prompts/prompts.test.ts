import assert from 'node:assert/strict';
import test from 'node:test';
import { jsonParser } from '../../../../src/agents/terminus-2/parsers/json-parser.ts';
import { xmlParser } from '../../../../src/agents/terminus-2/parsers/xml-parser.ts';
import * as episode from '../../../../src/agents/terminus-2/prompts/episode-prompts.ts';
import { renderPrompt } from '../../../../src/agents/terminus-2/prompts/render-prompt.ts';
import { replyShapes } from '../../../../src/agents/terminus-2/prompts/reply-format.ts';
import * as summary from '../../../../src/agents/terminus-2/prompts/summary-prompts.ts';

const formats = ['json', 'xml'] as const;
const now = new Date('2031-05-06T07:08:09.250Z');
/** Whatever a template language could take for its own. */
const verbatim = 'a {b} {{c}} ${d} %s $& $1 \\n </task> 💧';

for (const format of formats) {
  const parser = format === 'json' ? jsonParser : xmlParser;

  test(`the ${format} prompt ends with the task and the terminal, as they are`, () => {
    const parts = { instruction: verbatim, terminalState: `$ ${verbatim}`, deadline: null, now };
    const prompt = renderPrompt(format, parts);
    assert.ok(prompt.endsWith(`\n\nThe task:\n${verbatim}\n\n$ ${verbatim}`));
    assert.doesNotMatch(prompt, /stopped/);
  });

  test(`the ${format} prompt states a deadline: seconds from now and the instant`, () => {
    const deadline = new Date('2031-05-06T07:10:00.000Z');
    const prompt = renderPrompt(format, { instruction: 'i', terminalState: 't', deadline, now });
    assert.match(prompt, /stopped in 110 seconds, at 2031-05-06T07:10:00\.000Z \(UTC\)/);
  });

  test(`the ${format} prompt says of a deadline that has passed that nothing is left`, () => {
    const deadline = new Date(0);
    const prompt = renderPrompt(format, { instruction: 'i', terminalState: 't', deadline, now });
    assert.match(prompt, /stopped in 0 seconds, at 1970-01-01T00:00:00\.000Z/);
  });

  test(`the example in the ${format} prompt is a reply without a fault`, () => {
    const shape = replyShapes[format];
    const [start, end] = format === 'json' ? ['{\n', '\n}\n'] : ['<response>\n', '</response>\n'];
    const example = shape.slice(shape.indexOf(start), shape.indexOf(end) + end.length);
    const { commands, ...rest } = parser.parse(example);
    assert.deepEqual(commands, [
      { keystrokes: 'cd /srv/app\n', durationSec: 0.1 },
      { keystrokes: 'make test\n', durationSec: 20 },
    ]);
    assert.equal(rest.error + rest.warnings, '');
    assert.equal(rest.isTaskComplete, false);
  });

  test(`the ${format} prompt says all that its parser judges`, () => {
    const prompt = renderPrompt(format, {
      instruction: 'i',
      terminalState: 't',
      deadline: null,
      now,
    });
    const words = ['analysis', 'plan', 'commands', 'keystrokes', 'duration', 'task_complete'];
    for (const word of [...words, 'C-c', 'C-d', '0.1', '1.0', '60'])
      assert.ok(prompt.includes(word));
  });

  test(`what the ${format} completion question asks for completes`, () => {
    const question = episode.completionQuestion(format, verbatim);
    assert.ok(question.startsWith(`${verbatim}\n`));
    const [, asked = ''] = /write (.+) in your (?:JSON )?response once more/.exec(question) ?? [];
    const reply =
      format === 'json'
        ? `{"analysis": "", "plan": "", "commands": [], ${asked}}`
        : `<response><analysis/><plan/><commands/>${asked}</response>`;
    assert.equal(parser.parse(reply).isTaskComplete, true);
  });
}

const answers: readonly [title: string, text: string, expected: RegExp][] = [
  [
    'an error',
    episode.parseErrorPrompt('json', { error: 'E', warnings: '' }),
    /^Previous response had parsing errors:\nERROR: E\n\n.*proper JSON response\.$/s,
  ],
  [
    'an error with warnings',
    episode.parseErrorPrompt('xml', { error: 'E', warnings: '- W\n- V' }),
    /^Previous response had parsing errors:\nERROR: E\nWARNINGS: - W\n- V\n\n.*proper response\.$/s,
  ],
  [
    'warnings',
    episode.warningsPrompt({ warnings: '- W', output: 'O' }),
    /^Previous response had warnings:\nWARNINGS: - W\n\nO$/,
  ],
  [
    'a reply that was cut off at a known limit',
    episode.truncationPrompt({ maxTokens: 4096, warnings: '' }),
    /longer than 4096 tokens .*NONE of its actions .*smaller pieces/s,
  ],
  [
    'a reply that was cut off at an unknown limit, with warnings',
    episode.truncationPrompt({ maxTokens: null, warnings: '- W' }),
    /longer than the maximum output length .*:\n- W$/s,
  ],
];

for (const [title, text, expected] of answers)
  test(`the answer to a reply: ${title}`, () => {
    assert.match(text, expected);
  });

test('warnings without end are shown in part', () => {
  const warnings = '- W\n'.repeat(1_000_000);
  const texts = [
    episode.parseErrorPrompt('json', { error: 'E', warnings }),
    episode.warningsPrompt({ warnings, output: 'O' }),
    episode.truncationPrompt({ maxTokens: 1, warnings }),
  ];
  for (const text of texts) assert.ok(text.length < 11_000);
});

test('every text of a summary holds what it is given', () => {
  const given = { instruction: 'THE TASK', summary: 'THE SUMMARY', screen: 'THE SCREEN' };
  const holds = (text: string, ...parts: string[]): void => {
    for (const part of parts) assert.ok(text.includes(part), `${part} in ${text}`);
  };
  holds(summary.summaryRequest(given), 'THE TASK');
  holds(summary.questionsRequest(given), 'THE TASK', 'THE SUMMARY', 'THE SCREEN', 'at least five');
  holds(summary.answersRequest({ questions: 'Q?' }), 'Q?');
  holds(summary.handoffPrompt({ answers: 'A!' }), 'A!', 'Go on');
  holds(summary.shortSummaryRequest(given), 'THE TASK', 'THE SCREEN');
  holds(summary.shortSummaryHandoff(given), 'THE TASK', 'THE SUMMARY', 'Go on');
  holds(summary.screenHandoff(given), 'THE TASK', 'THE SCREEN', 'Go on');
});
