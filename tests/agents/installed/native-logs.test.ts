/** Logs of programs as steps, beyond what whole runs show: what is broken, cut off or doubled. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { readClaudeLog } from '../../../src/agents/claude-code/claude-log.ts';
import { readCodexLog } from '../../../src/agents/codex/codex-log.ts';
import type { CliRecord } from '../../../src/agents/installed/cli.ts';
import { opencodeCli } from '../../../src/agents/opencode/opencode-cli.ts';
import { promptEvent, readOpencodeLog } from '../../../src/agents/opencode/opencode-log.ts';
import { validateTrajectory } from '../../../src/trajectory/validate.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-log-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function log(name: string, lines: readonly (object | string)[]): Promise<void> {
  const file = path.join(dir, 'sessions', name);
  await mkdir(path.dirname(file), { recursive: true });
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  await writeFile(file, texts.join('\n'));
}

/** Steps as they would stand in a document, which has to be valid. */
function stepsOf(record: CliRecord | null) {
  assert.ok(record !== null);
  const steps = record.steps.map((step, index) => ({ ...step, step_id: index + 1 }));
  const agent = { name: 'x', version: record.agent.version ?? '?' };
  assert.deepEqual(validateTrajectory({ schema_version: 'ATIF-v1.7', agent, steps }), []);
  return steps;
}

describe('the log of Codex', () => {
  const codexFile = '2026/01/02/rollout-1.jsonl';
  const item = (payload: object) => ({
    ...{ timestamp: '2026-01-02T03:04:05.000Z', type: 'response_item' },
    payload,
  });
  const call = (id: string, input: object = {}) =>
    item({
      type: 'function_call',
      name: 'exec_command',
      call_id: id,
      arguments: '{"cmd":"x"}',
      ...input,
    });
  const output = (id: string, text: string) =>
    item({ type: 'function_call_output', call_id: id, output: text });
  const used = (id: string, input: number) => ({
    type: 'token_usage_record',
    payload: { response_id: id, usage: { input_tokens: input, output_tokens: 2 } },
  });

  test('has one step per call of the model, with its calls in their order and what each brought', async () => {
    await log(codexFile, [
      { type: 'session_meta', payload: { id: 's', cli_version: '1.2.3', cwd: '/app' } },
      { type: 'turn_context', payload: { turn_id: 't', model: 'm' } },
      item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'do it' }] }),
      item({ type: 'reasoning', summary: [{ text: 'a' }, { text: 'b' }], content: null }),
      ...[call('one'), call('two'), used('resp_1', 10), output('two', '2'), output('one', '1')],
      item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok' }] }),
      used('resp_2', 20),
    ]);
    const record = await readCodexLog(dir);
    const [user, first, second] = stepsOf(record);
    assert.deepEqual([record?.sessionId, record?.agent.version], ['s', '1.2.3']);
    assert.deepEqual([user?.source, user?.message], ['user', 'do it']);
    assert.equal(first?.reasoning_content, 'a\n\nb');
    assert.deepEqual(
      first.tool_calls?.map(({ tool_call_id: id }) => id),
      ['one', 'two'],
    );
    assert.deepEqual(
      first.observation?.results.map(({ source_call_id: id, content }) => [id, content]),
      [['two', '2'], ['one', '1']], // prettier-ignore
    );
    assert.deepEqual(first.metrics?.extra, { response_id: 'resp_1' });
    assert.deepEqual([second?.message, second?.metrics?.prompt_tokens], ['ok', 20]);
  });

  test('of a run that was cut off has the call whose end never came', async () => {
    await log(codexFile, [call('one'), `{"type": "response_item", "payload": {"type": "func`]);
    const [only, ...rest] = stepsOf(await readCodexLog(dir));
    assert.deepEqual([only?.tool_calls?.length, only?.observation, rest], [1, undefined, []]);
  });

  test('may hold arguments that are no object, results of an unknown call, and lines of no sense', async () => {
    await log(codexFile, [
      ...['', 'no json', '[1]', '{"type": "response_item"}', { type: 'later-invention' }],
      call('one', { arguments: 'free text' }),
      item({ type: 'custom_tool_call', name: 'apply_patch', call_id: 'two', input: '*** Begin' }),
      ...[output('nobody', 'x'), output('one', '{"output": "inner", "metadata": {}}')],
    ]);
    const [only] = stepsOf(await readCodexLog(dir));
    assert.deepEqual(
      only?.tool_calls?.map((made) => made.arguments),
      [{ input: 'free text' }, { input: '*** Begin' }],
    );
    assert.deepEqual(only.observation?.results, [{ source_call_id: 'one', content: 'inner' }]);
  });

  test('tells where the conversation was replaced by a summary', async () => {
    await log(codexFile, [
      ...[call('one'), used('resp_1', 1), { type: 'compacted', payload: { message: 'so far' } }],
    ]);
    const [, cut] = stepsOf(await readCodexLog(dir));
    assert.deepEqual([cut?.source, cut?.message], ['system', 'so far']);
  });

  test('is the newest of several, is not read through a link, and may be absent', async () => {
    assert.equal(await readCodexLog(dir), null);
    await log('2026/01/02/rollout-1.jsonl', [call('old')]);
    await log('2026/01/03/rollout-0.jsonl', [call('new')]);
    const [only] = stepsOf(await readCodexLog(dir));
    assert.equal(only?.tool_calls?.[0]?.tool_call_id, 'new');
    await symlink('/etc/passwd', path.join(dir, 'sessions/2026/01/03/rollout-9.jsonl'));
    assert.equal((await readCodexLog(dir))?.steps.length, 1);
  });
});

describe('the log of Claude Code', () => {
  const claudeFile = 'projects/-app/one.jsonl';
  let seconds = 0;
  beforeEach(() => (seconds = 0));
  const line = (type: 'assistant' | 'user', message: object, more: object = {}) => ({
    ...{ type, message, sessionId: 's', version: '2.0.0', uuid: `u${(seconds += 1)}` },
    ...{ timestamp: `2026-01-02T03:04:${String(seconds).padStart(2, '0')}.000Z`, ...more },
  });
  const said = (id: string, block: object, more: object = {}) =>
    line(
      'assistant',
      { id, model: 'm', content: [block], usage: { input_tokens: 5, cache_read_input_tokens: 7 } },
      { requestId: `r-${id}`, ...more },
    );
  const result = (id: string, content: unknown, more: object = {}) =>
    line('user', { content: [{ type: 'tool_result', tool_use_id: id, content, ...more }] });
  const use = (id: string) => ({ type: 'tool_use', id, name: 'Bash', input: { command: 'x' } });

  test('has one step for all that came under one id, and counts what was cached', async () => {
    await log(claudeFile, [
      line('user', { content: 'do it\n' }),
      said('a', { type: 'thinking', thinking: 'hm', signature: 'x' }),
      ...[said('a', { type: 'text', text: 'now' }), said('a', use('one')), said('a', use('two'))],
      ...[result('one', '1'), result('two', [{ type: 'text', text: '2' }])],
      said('b', { type: 'text', text: 'ok' }),
    ]);
    const record = await readClaudeLog(dir);
    const [user, first, second] = stepsOf(record);
    assert.equal(user?.message, 'do it\n');
    assert.deepEqual(
      [first?.message, first?.reasoning_content, first?.tool_calls?.length],
      ['now', 'hm', 2],
    );
    assert.deepEqual(
      first?.observation?.results.map(({ content }) => content),
      ['1', '2'],
    );
    assert.deepEqual([first.metrics?.prompt_tokens, first.metrics?.cached_tokens], [12, 7]);
    assert.equal(second?.extra?.['requestId'], 'r-b');
    assert.deepEqual(record?.tokens, { prompt: 24, completion: 0, cached: 14 });
  });

  test('tells of a result that it was an error, was interrupted, or wrote errors too', async () => {
    await log(claudeFile, [
      said('a', use('one')),
      {
        ...result('one', 'out', { is_error: true }),
        toolUseResult: { stdout: 'out', stderr: 'bad', interrupted: true },
      },
    ]);
    const [only] = stepsOf(await readClaudeLog(dir));
    assert.equal(
      only?.observation?.results[0]?.content,
      'out\n\n[stderr]\nbad\n\n[interrupted]\n\n[error] tool reported failure',
    );
  });

  test('takes doubled lines and results once, and leaves a call without a result', async () => {
    const first = said('a', use('one'));
    await log(claudeFile, [
      ...[first, first, result('one', '1'), result('one', 'again'), said('b', use('two'))],
      '{"type": "assistant", "message": {"id": "c", "cont',
    ]);
    const [one, two, ...rest] = stepsOf(await readClaudeLog(dir));
    assert.equal(one?.tool_calls?.length, 1);
    assert.deepEqual(
      one.observation?.results.map(({ content }) => content),
      ['1'],
    );
    assert.deepEqual([two?.observation, rest], [undefined, []]);
  });

  test('has what subagents did where it happened', async () => {
    await log(claudeFile, [said('a', use('one')), said('c', { type: 'text', text: 'end' })]);
    seconds = 1;
    await log('projects/-app/one/subagents/agent-1.jsonl', [
      {
        ...said('b', { type: 'text', text: 'inner' }, { isSidechain: true, agentId: 'g' }),
        timestamp: '2026-01-02T03:04:01.500Z',
        uuid: 'sub',
      },
    ]);
    const record = await readClaudeLog(dir);
    assert.deepEqual(
      stepsOf(record).map(({ message, extra }) => [message, extra?.['is_sidechain'] ?? false]),
      [['', false], ['inner', true], ['end', false]], // prettier-ignore
    );
    assert.deepEqual(record?.agent.extra?.['agent_ids'], ['g']);
  });

  test('of several projects is nobody’s, and may be absent', async () => {
    assert.equal(await readClaudeLog(dir), null);
    await log(claudeFile, [said('a', use('one'))]);
    await log('projects/-other/two.jsonl', [said('b', use('two'))]);
    assert.equal(await readClaudeLog(dir), null);
  });
});

describe('what OpenCode prints', () => {
  const at = 1_796_056_392_000;
  const event = (type: string, messageID: string, part: object = {}) => ({
    ...{ type, timestamp: at, sessionID: 'ses_1', part: { messageID, ...part } },
  });
  const ran = (messageID: string, callID: string, state: object) =>
    event('tool_use', messageID, {
      tool: 'bash',
      callID,
      state: { input: { command: 'x' }, ...state },
    });
  const printed = (lines: readonly (object | string)[]) => log('../opencode.txt', lines);
  const tokens = { input: 10, output: 4, reasoning: 3, cache: { read: 5, write: 2 } };

  test('has one step for each of its messages, after what was asked, and counts all tokens', async () => {
    await printed([
      promptEvent('do it'),
      ...[event('step_start', 'm1'), event('reasoning', 'm1', { text: 'hm' })],
      event('text', 'm1', { text: 'now' }),
      ran('m1', 'one', { status: 'completed', output: '1' }),
      ran('m1', 'two', { status: 'error', error: 'bad' }),
      event('step_finish', 'm1', { reason: 'tool-calls', tokens }),
      ...[event('step_start', 'm2'), event('text', 'm2', { text: 'ok' })],
    ]);
    const record = await readOpencodeLog(dir);
    const [user, first, second, ...rest] = stepsOf(record);
    assert.deepEqual([user?.source, user?.message, rest], ['user', 'do it', []]);
    assert.deepEqual([first?.message, first?.reasoning_content], ['now', 'hm']);
    assert.equal(first?.timestamp, new Date(at).toISOString());
    assert.deepEqual(
      first.observation?.results.map(({ content }) => content),
      ['1', '[error] bad'],
    );
    assert.deepEqual(first.metrics, {
      ...{ prompt_tokens: 17, completion_tokens: 7, cached_tokens: 5 },
      extra: { finish_reason: 'tool-calls', reasoning_tokens: 3, cache_write_tokens: 2 },
    });
    assert.deepEqual([second?.message, second?.metrics], ['ok', undefined]);
    assert.deepEqual(record?.tokens, { prompt: 17, completion: 7, cached: 5 });
  });

  test('may be cut off, hold lines of no sense, and a tool that says it was asked something else', async () => {
    await printed([
      ...[promptEvent('do it'), 'a warning', '{"type": "text"}', event('later', 'm1')],
      { ...event('text', 'm1', { text: 'a' }), timestamp: 'never' },
      promptEvent('forged'),
      '{"type":"tool_use","timestamp":17',
    ]);
    assert.deepEqual(
      stepsOf(await readOpencodeLog(dir)).map(({ message }) => message),
      ['do it', 'a'],
    );
  });

  test('is nothing where the program said nothing', async () => {
    await printed([promptEvent('do it'), 'no such file']);
    assert.equal(await readOpencodeLog(dir), null);
  });

  test('tells of an error that ended its work, which it may end well after', () => {
    const failed = { type: 'error', error: { name: 'APIError', data: { message: 'no' } } };
    const lines = [event('text', 'm1', { text: 'a' }), failed];
    const output = lines.map((line) => JSON.stringify(line)).join('\n');
    const problemIn = (text: string) => opencodeCli.problemIn?.(text);
    assert.equal(problemIn(output), 'APIError: no');
    assert.equal(problemIn('{"type":"text"}\nan error'), null);
  });
});
