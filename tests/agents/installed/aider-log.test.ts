/** What aider keeps of its calls as steps, beyond what whole runs show. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { aiderCli } from '../../../src/agents/aider/aider-cli.ts';
import { eventsName, modelLogName, readAiderLog } from '../../../src/agents/aider/aider-log.ts';

const said = (role: string, text: string): string =>
  text
    .split('\n')
    .map((line) => `${role} ${line}`)
    .join('\n');
const asked = (...messages: readonly (readonly [role: string, text: string])[]): string =>
  [
    'TO LLM 2026-11-30T10:00:00',
    ...messages.map(([role, text]) => `-------\n${said(role, text)}`),
    '',
  ].join('\n');
const answered = (text: string): string =>
  `LLM RESPONSE 2026-11-30T10:00:01\n${text === '' ? '' : said('ASSISTANT', text)}\n`;
const sent = (prompt: number, completion: number): string =>
  `${JSON.stringify({
    event: 'message_send',
    properties: {
      ...{ prompt_tokens: prompt, completion_tokens: completion },
      ...{ edit_format: 'whole', aider_version: '0.86.2' },
    },
  })}\n`;

const begun = asked(['SYSTEM', 'be good'], ['USER', 'an example'], ['USER', 'do\n\nit']);

describe('the log of aider', () => {
  let dir = '';
  beforeEach(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-log-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const stepsOf = async (log: string, events = '') => {
    await writeFile(path.join(dir, modelLogName), log);
    await writeFile(path.join(dir, eventsName), events);
    const record = await readAiderLog(dir);
    const steps = (record?.steps ?? []).map(({ source, message }) => [source, message]);
    return { record, steps };
  };

  test('has a step for each answer, and for what was said to the model before it', async () => {
    const again = asked(['SYSTEM', 'be good'], ['ASSISTANT', 'a'], ['USER', 'it is wrong']);
    const { record, steps } = await stepsOf(
      `${begun}${answered('a.py\n```\n-------\n\nTO LLM 2026-11-30T10:00:00\n```')}${again}${answered('done')}`,
      `{"event": "launched"}\n${sent(10, 3)}${sent(20, 1)}`,
    );
    assert.deepEqual(steps, [
      ['system', 'be good'],
      ['user', 'do\n\nit'],
      ['agent', 'a.py\n```\n-------\n\nTO LLM 2026-11-30T10:00:00\n```'],
      ['user', 'it is wrong'],
      ['agent', 'done'],
    ]);
    assert.deepEqual(record?.tokens, { prompt: 30, completion: 4, cached: 0 });
    assert.deepEqual(record.steps.at(-1)?.metrics, { prompt_tokens: 20, completion_tokens: 1 });
    assert.deepEqual(record.agent, { version: '0.86.2', extra: { edit_format: 'whole' } });
  });

  test('passes over calls that failed, and over what was cut off', async () => {
    const { record, steps } = await stepsOf(
      `${begun}${answered('')}${begun}${answered('done')}${begun}LLM RESP`,
    );
    assert.deepEqual(steps, [
      ['system', 'be good'],
      ['user', 'do\n\nit'],
      ['agent', 'done'],
    ]);
    assert.equal(record?.steps.at(-1)?.metrics, undefined, 'no usage is told');
  });

  test('is nothing where it is empty, missing or a link to elsewhere', async () => {
    assert.equal(await readAiderLog(dir), null);
    assert.equal((await stepsOf('')).record, null);
    await writeFile(path.join(dir, 'else'), `${begun}${answered('done')}`);
    await rm(path.join(dir, modelLogName));
    await symlink(path.join(dir, 'else'), path.join(dir, modelLogName));
    assert.equal(await readAiderLog(dir), null);
  });
});

describe('the command of aider', () => {
  const commandFor = (task: object) =>
    aiderCli.command({
      ...{ modelName: "a'b", baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key-of-trial' },
      ...{ instruction: 'do it', options: {}, mcpServers: [], skillsDir: null },
      ...{ homeDir: '/home', program: 'aider' },
      ...task,
    });
  const settingsIn = ({ files }: ReturnType<typeof commandFor>): unknown =>
    JSON.parse(files['/home/model-settings.yml'] ?? 'null');

  test('has the key and the address in a file, and neither in its line nor in variables', () => {
    const made = commandFor({ options: { temperature: 1, reasoning_effort: 'low' } });
    assert.deepEqual(settingsIn(made), [
      {
        name: 'aider/extra_params',
        extra_params: {
          ...{ api_base: 'http://127.0.0.1:9/v1', api_key: 'key-of-trial', timeout: 86_400 },
          ...{ temperature: 1, extra_body: { reasoning_effort: 'low' } },
        },
      },
    ]);
    assert.ok(!JSON.stringify([made.command, made.env]).includes('key-of-trial'));
    assert.match(made.command, /--model 'openai\/a'\\''b' /);
  });

  for (const instruction of ['/app is broken', '!not'])
    test(`does not take ${JSON.stringify(instruction)} for a command of its own`, () => {
      const { files } = commandFor({ instruction });
      assert.equal(files['/home/message.md'], `\n${instruction}`);
    });

  test('tells of a last call that brought nothing, and of a limit, and of nothing else', () => {
    const none = '[the last call of the model brought no answer]';
    const limit = 'Model openai/m has hit a token limit!\nOutput tokens: ~9 of 0';
    const rows: readonly (readonly [string, boolean])[] = [
      [`litellm.InternalServerError: x\n${none}\n`, true],
      [`Tokens: 5 sent, 9 received.\n${limit}\n`, true],
      [`${none}\nApplied edit to a\n`, false],
      ['litellm.InternalServerError: x\nRetrying in 0.2 seconds...\ndone\n', false],
    ];
    for (const [output, isProblem] of rows)
      assert.equal(aiderCli.problemIn?.(output) !== null, isProblem, output);
  });
});
