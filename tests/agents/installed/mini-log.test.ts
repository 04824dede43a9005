/** The log of mini-swe-agent as steps, beyond what whole runs show. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { CliRecord } from '../../../src/agents/installed/cli.ts';
import { miniLogName, readMiniLog } from '../../../src/agents/mini-swe-agent/mini-log.ts';
import { validateTrajectory } from '../../../src/trajectory/validate.ts';

let dir = '';
let file = '';
beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-log-'));
  file = path.join(dir, miniLogName);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Steps as they would stand in a document, which has to be valid. */
function stepsOf(record: CliRecord | null) {
  assert.ok(record !== null);
  const steps = record.steps.map((step, index) => ({ ...step, step_id: index + 1 }));
  const agent = { name: 'x', version: record.agent.version ?? '?' };
  assert.deepEqual(validateTrajectory({ schema_version: 'ATIF-v1.7', agent, steps }), []);
  return steps;
}

describe('the trajectory of mini-swe-agent', () => {
  const answer = (id: string, message: object) => ({
    ...{ id, model: 'm', choices: [{ message }] },
    usage: { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1 } },
  });
  const bash = (id: string) => ({ id, function: { name: 'bash', arguments: '{"command":"x"}' } });
  const asked = (id: string, message: object) => ({
    ...{ role: 'assistant', content: null, ...message },
    extra: { response: answer(id, message), timestamp: 1_796_056_392 },
  });
  const begun = [
    { role: 'system', content: 'be good' },
    { role: 'user', content: 'do it' },
  ];
  const written = (messages: readonly object[]) =>
    writeFile(
      file,
      JSON.stringify({
        info: { mini_version: '2.4.6', config: { agent: { step_limit: 0 } } },
        messages,
      }),
    );

  test('has a step for each call of the model, with its commands and what they brought', async () => {
    await written([
      ...begun,
      asked('a', { reasoning_content: 'hm', tool_calls: [bash('one'), bash('two')] }),
      { role: 'tool', tool_call_id: 'one', content: '1' },
      { role: 'tool', tool_call_id: 'two', content: [{ type: 'text', text: '2' }] },
      asked('b', { content: 'done', tool_calls: [bash('end')] }),
      { role: 'exit', content: 'what it hands in' },
    ]);
    const record = await readMiniLog(dir);
    const steps = stepsOf(record);
    assert.deepEqual(
      steps.map(({ source, message }) => [source, message]),
      [
        ['system', 'be good'],
        ['user', 'do it'],
        ['agent', ''],
        ['agent', 'done'],
      ],
    );
    assert.equal(steps[2]?.reasoning_content, 'hm');
    assert.equal(steps[2].timestamp, new Date(1_796_056_392_000).toISOString());
    assert.deepEqual(
      steps[2].observation?.results.map((one) => [one.source_call_id, one.content]),
      [
        ['one', '1'],
        ['two', '2'],
      ],
    );
    assert.equal(steps[3]?.observation, undefined);
    assert.deepEqual(record?.tokens, { prompt: 10, completion: 4, cached: 2 });
    assert.deepEqual(record.agent.extra?.['agent_config'], { step_limit: 0 });
  });

  test('has an answer without a command too, which the program keeps beside its complaint', async () => {
    const complaint = { response: answer('a', { role: 'assistant', content: 'I am lost' }) };
    await written([
      ...begun,
      { role: 'user', content: 'no command', extra: complaint },
      asked('b', { tool_calls: [bash('one')] }),
    ]);
    const [, , lost, next] = stepsOf(await readMiniLog(dir));
    assert.equal(lost?.message, 'I am lost');
    assert.equal(lost.metrics?.extra?.['response_id'], 'a');
    assert.deepEqual(lost.observation?.results, [{ content: 'no command' }]);
    assert.equal(next?.tool_calls?.length, 1);
  });

  test('is nothing where it is cut off, missing or a link to elsewhere', async () => {
    assert.equal(await readMiniLog(dir), null);
    await writeFile(file, '{"messages": [');
    assert.equal(await readMiniLog(dir), null);
    await rm(file);
    await written(begun);
    await writeFile(path.join(dir, 'else.json'), '{"messages": []}');
    await rm(file);
    await symlink(path.join(dir, 'else.json'), file);
    assert.equal(await readMiniLog(dir), null);
  });
});
