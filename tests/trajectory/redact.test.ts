import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openTrajectory } from '../../src/trajectory/file-trajectory-log.ts';
import { redactByKey, TrajectoryRedactor } from '../../src/trajectory/redact.ts';
import type { NewStep } from '../../src/trajectory/trajectory-log.ts';
import type { AtifAgent, AtifTrajectory } from '../../src/wire/atif/atif.ts';

const secret = 'sk-"café"\\1/x';
const agent: AtifAgent = { name: 'tester', version: '1' };
const ids = { prompt_token_ids: [1, 2], completion_token_ids: [3], logprobs: [-0.5] };
const mark = { slipway: { trainable: false, reason: 'secret-redacted' } };

function reply(fields: Partial<NewStep> = {}): NewStep {
  return { source: 'agent', message: 'ok', metrics: { ...ids, prompt_tokens: 2 }, ...fields };
}

function cleaned(
  ...steps: readonly (NewStep & { readonly sampled?: string })[]
): readonly NewStep[] {
  const redactor = new TrajectoryRedactor([secret]);
  return steps.map(({ sampled, ...step }) => redactor.step(step, sampled));
}

describe('secrets in a trajectory', () => {
  const spelled = {
    'as it is': secret,
    'in JSON': JSON.stringify(secret).slice(1, -1),
    'in JSON that is ASCII': JSON.stringify(secret).slice(1, -1).replace('é', '\\u00e9'),
    'in JSON inside JSON': JSON.stringify(JSON.stringify(secret)).slice(3, -3),
    'in JSON with escaped slashes': JSON.stringify(secret).slice(1, -1).replace('/', '\\/'),
  };
  for (const [title, text] of Object.entries(spelled))
    test(`are replaced in every string: ${title}`, () => {
      const [step] = cleaned({
        source: 'agent',
        message: [{ type: 'text', text: `a ${text} b` }],
        reasoning_content: text,
        model_name: text,
        tool_calls: [
          {
            tool_call_id: `c ${text}`,
            function_name: text,
            arguments: { keystrokes: `x${text}`, deep: [{ [`key ${text}`]: [text, 1, null] }] },
          },
        ],
        observation: { results: [{ source_call_id: `c ${text}`, content: text }] },
        extra: { raw: text },
      });
      assert.deepEqual(step, {
        source: 'agent',
        message: [{ type: 'text', text: 'a [REDACTED] b' }],
        reasoning_content: '[REDACTED]',
        model_name: '[REDACTED]',
        tool_calls: [
          {
            tool_call_id: 'c [REDACTED]',
            function_name: '[REDACTED]',
            arguments: {
              keystrokes: 'x[REDACTED]',
              deep: [{ 'key [REDACTED]': ['[REDACTED]', 1, null] }],
            },
          },
        ],
        observation: { results: [{ source_call_id: 'c [REDACTED]', content: '[REDACTED]' }] },
        extra: { raw: '[REDACTED]' },
      });
    });

  const wide = 'tok-0123456789.abcdefghij';
  const wrapped: readonly (readonly [string, string, string])[] = [
    ['once', `$ env\nT=${wide.slice(0, 9)}\n${wide.slice(9)}\n$`, '$ env\nT=[REDACTED]\n$'],
    ['again and again', `${Array.from(wide).join('\n')}\n`, '[REDACTED]\n'],
    ['beside a whole one', `${wide} tok-\n${wide.slice(4)}`, '[REDACTED] [REDACTED]'],
    ['once more behind a gap', `tok-\n\n${wide}\nx`, 'tok-\n\n[REDACTED]\nx'],
    ['a short one is no secret when broken', 'pin-\n4711', 'pin-\n4711'],
    ['an empty line breaks nothing off', `tok-\n\n${wide.slice(4)}`, `tok-\n\n${wide.slice(4)}`],
  ];
  for (const [title, text, expected] of wrapped)
    test(`are found where a terminal broke the line within: ${title}`, () => {
      const redactor = new TrajectoryRedactor([wide, wide.slice(0, 8), 'pin-4711']);
      assert.equal(redactor.text(text), expected);
      assert.equal(redactor.holds({ text }), text !== expected);
    });

  test('words of the format stay, also when a secret is such a word', () => {
    const redactor = new TrajectoryRedactor(['system', 'message', '2026-03']);
    const step: NewStep = {
      source: 'system',
      timestamp: '2026-03-01T00:00:00Z',
      message: 'system',
    };
    assert.deepEqual(redactor.step(step), { ...step, message: '[REDACTED]' });
  });

  const known = 'own text of the step';
  const rows: readonly (readonly [string, NewStep & { readonly sampled?: string }])[] = [
    [known, reply({ message: `use ${secret}` })],
    ['reasoning', reply({ reasoning_content: secret })],
    [
      'a tool argument',
      reply({
        tool_calls: [{ tool_call_id: 'c', function_name: 'f', arguments: { a: [secret] } }],
      }),
    ],
    ['the text that was sampled', { ...reply(), sampled: JSON.stringify({ plan: secret }) }],
  ];
  for (const [title, step] of rows)
    test(`sampled ids go with a secret in ${title}, and later prompts are not kept either`, () => {
      const [first, second, third] = cleaned(step, reply(), { source: 'user', message: 'more' });
      assert.deepEqual(first?.metrics, { prompt_token_ids: [1, 2], prompt_tokens: 2 });
      assert.deepEqual(first.extra, mark);
      assert.deepEqual(second?.metrics, {
        completion_token_ids: [3],
        logprobs: [-0.5],
        prompt_tokens: 2,
      });
      assert.deepEqual(second.extra, mark);
      assert.deepEqual(third, { source: 'user', message: 'more' });
    });

  test('a secret in an observation leaves the ids of its own step alone', () => {
    const seen = reply({ observation: { results: [{ content: secret }] }, extra: { a: 1 } });
    const [first, second] = cleaned(seen, reply({ extra: { slipway: { call: 7 } } }));
    assert.deepEqual([first?.metrics, first?.extra], [{ ...ids, prompt_tokens: 2 }, { a: 1 }]);
    assert.equal(second?.metrics?.prompt_token_ids, undefined);
    assert.deepEqual(second?.extra, {
      slipway: { call: 7, trainable: false, reason: 'secret-redacted' },
    });
  });

  test('a step of several calls may have prompted with its own observation', () => {
    const [step] = cleaned(
      reply({ llm_call_count: 2, observation: { results: [{ content: secret }] } }),
    );
    assert.deepEqual([step?.metrics, step?.extra], [{ prompt_tokens: 2 }, mark]);
  });

  test('a secret in the tool definitions is in every prompt', () => {
    const redactor = new TrajectoryRedactor([secret]);
    assert.deepEqual(redactor.agent({ ...agent, tool_definitions: [{ d: secret }] }), {
      ...agent,
      tool_definitions: [{ d: '[REDACTED]' }],
    });
    assert.equal(redactor.step(reply()).metrics?.prompt_token_ids, undefined);
  });

  test('a secret in what follows takes no ids from what came before', () => {
    const [first] = cleaned(reply(), { source: 'user', message: secret });
    assert.deepEqual(first, reply());
  });
});

describe('values under names of secrets', () => {
  const names: readonly (readonly [string, boolean])[] = [
    ...['api_key', 'API-KEY', 'openai_api_key', 'apikey', 'Authorization', 'proxy-authorization'],
    ...['credential', 'aws_credentials', 'password', 'db_password', 'secret', 'access_token'],
  ].map((name) => [name, true] as const);
  const others: readonly (readonly [string, boolean])[] = [
    ...['max_tokens', 'tokenizer', 'passwords', 'my_key', 'keyapi_keyx', 'secretary'],
  ].map((name) => [name, false] as const);
  for (const [name, isReplaced] of [...names, ...others])
    test(`${name} is ${isReplaced ? 'replaced' : 'kept'}`, () =>
      assert.deepEqual(redactByKey({ a: [{ [name]: 5 }] }), {
        a: [{ [name]: isReplaced ? '[REDACTED]' : 5 }],
      }));
});

describe('a task about passwords', () => {
  let dir = '';
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'redact-trajectory-'));
  });
  after(() => rm(dir, { recursive: true }));

  test('keeps messages, arguments and ids as they were; only agent.extra follows key names', async () => {
    const file = path.join(dir, 'trajectory.json');
    const steps: readonly NewStep[] = [
      { source: 'user', message: 'Set password=hunter22 and api_key: "abc" in the file.\r\n' },
      reply({
        message: 'password=hunter22',
        tool_calls: [
          {
            tool_call_id: 'c',
            function_name: 'write',
            arguments: { password: 'hunter22', token: null, api_key: ['abc'] },
          },
        ],
        observation: { results: [{ source_call_id: 'c', content: 'authorization: Bearer abc' }] },
        extra: { secret: 'kept' },
      }),
    ];
    const log = await openTrajectory({
      file,
      head: {
        sessionId: 's',
        trajectoryId: null,
        agent: { ...agent, extra: { llm_kwargs: { api_key: 'k', max_tokens: 5 }, url: secret } },
        notes: `n ${secret}`,
        extra: { password: 'kept', s: secret },
      },
      secrets: ['', secret],
    });
    for (const step of steps) await log.append(step);
    await log.close({ finalMetrics: null });
    const document = JSON.parse(await readFile(file, 'utf8')) as AtifTrajectory;
    assert.deepEqual(
      document.steps,
      steps.map((step, index) => ({ step_id: index + 1, ...step })),
    );
    assert.deepEqual(document.agent.extra, {
      llm_kwargs: { api_key: '[REDACTED]', max_tokens: 5 },
      url: '[REDACTED]',
    });
    assert.equal(document.notes, 'n [REDACTED]');
    assert.deepEqual(document.extra, { password: 'kept', s: '[REDACTED]' });
  });
});
