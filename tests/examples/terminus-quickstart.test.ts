import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { bundledTasksDir, readExpectations } from '../../scripts/quickstart/expectations.js';
import { jsonParser } from '../../src/agents/terminus-2/parsers/json-parser.ts';
import type { ParsedReply } from '../../src/agents/terminus-2/parsers/parsed-reply.ts';
import {
  completionQuestion,
  parseErrorPrompt,
} from '../../src/agents/terminus-2/prompts/episode-prompts.ts';
import { renderPrompt } from '../../src/agents/terminus-2/prompts/render-prompt.ts';
import type { ChatMessage } from '../../src/engines/chat-message.ts';
import { loadPolicy } from '../../src/engines/mock/policy.ts';

const file = path.resolve(import.meta.dirname, '../../examples/policies/terminus-quickstart.js');
const policy = await loadPolicy(file);
const { expectedRewards } = (await import(pathToFileURL(file).href)) as {
  readonly expectedRewards: Readonly<Record<string, number>>;
};
const prompt = `root@box:/app# `;
/** More turns than any script takes. */
const maxTurns = 100;

/** What a command shows, for the first key that it contains. */
type Screen = Readonly<Record<string, string>>;

interface Played {
  readonly typed: readonly string[];
  readonly replies: readonly ParsedReply[];
  readonly isFinished: boolean;
}

/** How the terminal shows what was typed: with the next look, two looks later, with all that was shown before, or cut, of which the last line comes again. */
type Showing = 'at once' | 'late' | 'as a whole screen' | 'in two pieces';

/** Plays agent and terminal for a policy: the echo of what is typed, the lines of `screen`, and the exit status that was asked for. */
async function play(
  instruction: string,
  screen: Screen,
  showing: Showing = 'at once',
): Promise<Played> {
  const now = new Date(0);
  const first = renderPrompt('json', { instruction, terminalState: prompt, deadline: null, now });
  const messages: ChatMessage[] = [{ role: 'user', content: first }];
  const typed: string[] = [];
  const replies: ParsedReply[] = [];
  const looks: string[] = showing === 'late' ? ['', ''] : [];
  let shown = '';
  let wasCut = false;
  for (let turn = 0; turn < maxTurns; turn++) {
    const request = { messages, tools: [], turn, model: 'mock', seed: 0, random: () => 0.5 };
    const { content } = await policy(request);
    const parsed = jsonParser.parse(content);
    const wasComplete = replies.at(-1)?.isTaskComplete === true;
    replies.push(parsed);
    if (parsed.isTaskComplete && wasComplete) return { typed, replies, isFinished: true };
    const keys = parsed.commands.map(({ keystrokes }) => keystrokes);
    typed.push(...keys);
    looks.push(keys.map((line) => show(line, screen)).join(''));
    shown = `${showing === 'as a whole screen' ? shown : ''}${looks.shift() ?? ''}`;
    const lines = shown.split('\n');
    if (showing === 'in two pieces' && shown.includes('\nend of ') && !wasCut) {
      shown = lines.slice(0, -3).join('\n');
      looks.unshift(lines.slice(-4).join('\n'));
      wasCut = true;
    } else wasCut = false;
    const output = `New Terminal Output:\n\n${shown}`;
    const answer = parsed.isTaskComplete ? completionQuestion('json', output) : output;
    messages.push(
      { role: 'assistant', content },
      { role: 'user', content: parsed.error === '' ? answer : parseErrorPrompt('json', parsed) },
    );
  }
  return { typed, replies, isFinished: false };
}

function show(line: string, screen: Screen): string {
  const end = /echo "(end of \d+): \$\?"/.exec(line)?.[1];
  const found = Object.entries(screen).find(([part]) => line.includes(part))?.[1] ?? '';
  return `${prompt}${line}${end === undefined ? found : `${end}: 0\n`}`;
}

const instructionOf = (folder: string): Promise<string> =>
  readFile(path.join(bundledTasksDir, folder, 'instruction.md'), 'utf8');

const rows: readonly [folder: string, screen: Screen, writes: readonly string[]][] = [
  ['artifacts', { "'| %s'": '| 26\n' }, ['echo 26 > /logs/artifacts/note.txt\n']],
  [
    'environment-templates',
    { HOME_PORT: '| Oslo\n|\n| a-${b}\n' },
    ["printf '%s\\n' 'OSLO' '0' 'a-${b}' > /app/variables.txt\n"],
  ],
  [
    'file-answer',
    { 'orders.csv': '| north-pier,120\n| harbour-caf_,35\n| harbour-café,18\n' },
    ["printf '%s\\n' '53' > /app/answer.txt\n"],
  ],
  ['healthcheck', { lighthouse: '| beam\n' }, ['cp /srv/lighthouse/signal /app/signal.txt\n']],
  [
    'multi-step-ledger/steps/open',
    { balance: '| 40\n' },
    ["printf '%s\\n' 'open 40' > /app/ledger.txt\n"],
  ],
  [
    'multi-step-ledger/steps/post',
    { entries: '| 10,-4\n| 9,15\n' },
    ["printf '%s\\n' 'post 15' 'post -4' >> /app/ledger.txt\n"],
  ],
  [
    'multi-step-ledger/steps/close',
    { ledger: '| open 40\n| post -50\n' },
    ["printf '%s\\n' 'close -10' >> /app/ledger.txt\n"],
  ],
  [
    'no-network',
    { route: '| 0\n', '192.0.2.1': '| 1\n', '127.0.0.1': '| 1\n' },
    ["printf '%s\\n' '0' 'closed' 'loopback' > /app/network.txt\n"],
  ],
  ['partial-reward', { depths: '| 7\n| 8\n' }, ["printf '%s\\n' '42' '?' > /app/feet.txt\n"]],
  [
    'prebuilt-image',
    { '-rl ace': '| a/b.txt\n' },
    ["printf '%s\\n' 'a/b.txt' > /srv/answer.txt\n"],
  ],
  [
    'separate-verifier',
    { message: '| dzdb\n' },
    ["printf '%s\\n' 'away' > /app/translation.txt\n"],
  ],
  ['side-service', { NOK: '| 10\n', SEK: '| 100\n' }, ["printf '%s\\n' '230' > /app/price.txt\n"]],
  ['step-gate/steps/publish', {}, ['cp /app/draft.txt /app/published.txt\n']],
  ['working-folder', { 'ls notes': '| b.svg\n| c.txt\n' }, ['mv notes/c.txt notes/c.md\n']],
];

for (const [folder, screen, writes] of rows)
  for (const showing of ['at once', 'late', 'as a whole screen', 'in two pieces'] as const)
    test(`the quickstart policy writes what it has read, shown ${showing}: ${folder}`, async () => {
      const { typed, isFinished } = await play(await instructionOf(folder), screen, showing);
      for (const line of writes) assert.ok(typed.includes(line), `${line} in ${typed.join('')}`);
      assert.ok(isFinished);
    });

test('the quickstart policy says what reward each bundled task ends with', () => {
  const folders = readExpectations().map(({ task }) => task);
  assert.deepEqual(Object.keys(expectedRewards).sort(), folders.toSorted());
  const solved = Object.values(expectedRewards).filter((reward) => reward === 1);
  const failed = Object.values(expectedRewards).filter((reward) => reward === 0);
  assert.ok(solved.length >= 8 && failed.length >= 4);
});

test('the quickstart policy makes one mistake of form, and goes on after it', async () => {
  const { replies } = await play(await instructionOf('healthcheck'), { lighthouse: '| beam\n' });
  assert.match(replies[0]!.error, /^Invalid JSON/);
  for (const { error, warnings } of replies.slice(1)) assert.equal(error + warnings, '');
});

test('the quickstart policy interrupts a command that waits for input', async () => {
  const { typed } = await play(await instructionOf('prebuilt-image'), {});
  assert.equal(typed[1], 'C-c');
});

test('the quickstart policy gives up on a task that it does not know', async () => {
  const { isFinished, typed } = await play('Build a ship.', {});
  assert.ok(isFinished);
  assert.deepEqual(typed, ['ls\n']);
});

test('the quickstart policy looks neither at solutions nor at tests', async () => {
  assert.doesNotMatch(await readFile(file, 'utf8'), /\/solution|\/tests/);
});
