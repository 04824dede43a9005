import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { LocalBackend } from '../../../src/backends/local/local-backend.ts';
import type { ExecutionRequest, ExecutionResult } from '../../../src/backends/execution-backend.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { silentLogger, type Logger } from '../../../src/core/logger.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { listening, localBackend, requestOf, runOn, systemPython } from './local-bench.ts';

const module = path.join(import.meta.dirname, 'user-code.ts');
let dataDir = '';
let backend: LocalBackend;

const options = { workflow: `${module}:Workflow`, grader: `${module}:TestGrader`, memory_mb: 64 };
const make = (over: Readonly<Record<string, unknown>> = {}, maxConcurrent = 3): LocalBackend =>
  localBackend(
    { ...options, workflow_config: { name: 'test' }, ...over },
    { dataDir, maxConcurrent },
  );

before(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'slipway-local-'));
  backend = make();
  await backend.start(never);
});
after(async () => {
  await backend.close();
  await rm(dataDir, { recursive: true, force: true });
});

const run = (over: Partial<ExecutionRequest>, using = backend) => runOn(using, over);

const doing = (act: string, grade = 'seven') => ({ metadata: { act, grade } });

describe('a workflow of the local backend', () => {
  it('gets the prompt, its configuration, the metadata and the route unchanged', async () => {
    const { result } = await run(doing('echo'));
    const [prompt, echo] = result.sample?.messages ?? [];
    assert.deepEqual(prompt, { role: 'user', content: 'hello', own: { key: 1 } });
    assert.deepEqual(JSON.parse(String(echo?.['content'])), {
      metadata: { act: 'echo', grade: 'seven' },
      config: { name: 'test' },
      model: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'route-key-1234' },
    });
  });

  const answers: readonly (readonly [
    string,
    string,
    (result: ExecutionResult) => unknown,
    unknown,
  ])[] = [
    ['a list is its messages', 'list', (r) => r.sample?.messages.length, 1],
    ['an output object brings metrics', 'output', (r) => r.sample?.metrics, { turns: 2 }],
    ['nothing is no sample', 'nothing', (r) => [r.status, r.sample], ['success', null]],
    [
      'null messages are no sample',
      'null-messages',
      (r) => [r.status, r.sample],
      ['success', null],
    ],
  ];
  for (const [title, act, look, expected] of answers)
    it(`may answer: ${title}`, async () => {
      const { result } = await run({ ...doing(act), wantsGrade: false });
      assert.deepEqual(look(result), expected);
      assert.deepEqual(result.outcome, {
        stage: 'done',
        cause: null,
        trainable: false,
        retryable: false,
        verdict: null,
      });
    });

  const failures: readonly (readonly [string, string, RegExp, string, string])[] = [
    ['text', 'SAMPLE_INVALID', /answered no sample/, 'validation_error', 'a text is no sample'],
    ['unknown-key', 'SAMPLE_INVALID', /reward/, 'validation_error', 'an unknown key is refused'],
    ['nan-metric', 'SAMPLE_INVALID', /metrics.loss/, 'validation_error', 'NaN is no metric'],
    ['circular', 'SAMPLE_INVALID', /not JSON/, 'validation_error', 'a circle has no JSON'],
    ['throws', 'WORKFLOW_FAILED', /^the tool broke$/, 'agent_error', 'an error keeps its words'],
    [
      'throws-value',
      'WORKFLOW_FAILED',
      /^a wrong value$/,
      'validation_error',
      'a wrong value is one of validation',
    ],
    [
      'throws-timeout',
      'WORKFLOW_FAILED',
      /^the tool took too long$/,
      'timeout',
      'its own timeout keeps its words',
    ],
    [
      'throws-secret',
      'WORKFLOW_FAILED',
      /^refused: \[REDACTED\]$/,
      'agent_error',
      'a key in a message is replaced',
    ],
    [
      'throws-long',
      'WORKFLOW_FAILED',
      /^x(?:😀){1999}…$/u,
      'agent_error',
      'a long message is cut between characters',
    ],
    [
      'throws-nothing',
      'WORKFLOW_FAILED',
      /^null$/,
      'agent_error',
      'whatever is thrown is a failure',
    ],
    [
      'exits',
      'WORKFLOW_FAILED',
      /exit code 3/,
      'agent_error',
      'process.exit ends the rollout only',
    ],
    [
      'fails-later',
      'WORKFLOW_FAILED',
      /in a timer/,
      'agent_error',
      'an error outside of the run is one of the rollout',
    ],
    [
      'eats-memory',
      'WORKFLOW_FAILED',
      /out of memory/,
      'agent_error',
      'a full heap ends the rollout only',
    ],
  ];
  for (const [act, cause, message, category, title] of failures)
    it(`fails typed: ${title}`, async () => {
      const { result, told } = await run(doing(act));
      assert.equal(result.status, 'failure');
      assert.match(result.errMessage ?? '', message);
      assert.equal(result.errCategory, category);
      assert.equal(result.outcome.cause, cause);
      assert.equal(result.outcome.stage, 'agent');
      assert.equal(result.sample, null);
      assert.deepEqual([told.begun.length, told.completed.length], [1, 0]);
    });

  it('whose constructor throws is a failure of the rollout', async () => {
    const broken = make({ workflow_config: { name: 'broken' } });
    try {
      const { result } = await run({}, broken);
      assert.equal(result.errMessage, 'no such model');
    } finally {
      await broken.close();
    }
  });

  it('leaves artifacts and what it printed, which go when they are released', async () => {
    const { result, execution } = await run(doing('artifacts'));
    assert.deepEqual(result.files.map(({ name }) => name).sort(), ['artifacts', 'console.log']);
    const [artifacts] = result.files.filter(({ name }) => name === 'artifacts');
    const note = path.join(artifacts?.path ?? '', 'note.txt');
    assert.equal(await readFile(note, 'utf8'), 'kept');
    await execution.release();
    await assert.rejects(readFile(note), { code: 'ENOENT' });
  });

  it('keeps the folder of which not all was archived, named in a warning, unless its controller cancelled', async () => {
    const warnings: string[] = [];
    const logger: Logger = {
      log: (level, message, fields) => {
        if (level === 'warn') warnings.push(`${message} ${String(fields?.['folder'])}`);
      },
    };
    const warned = localBackend(options, { dataDir, logger });
    const rows: readonly (readonly [act: string, reason: Error | null, stays: boolean])[] = [
      ['artifacts', null, true],
      ['list', null, false],
      ['artifacts', new RolloutError('CANCELLED', 'enough', { phase: 'agent' }), false],
      ['artifacts', new RolloutError('SERVER_STOPPING', 'it stops', { phase: 'agent' }), true],
    ];
    try {
      for (const [act, reason, stays] of rows) {
        const { execution } = await run({ ...doing(act), id: 'the-rollout' }, warned);
        if (reason !== null) await execution.abort(reason);
        await execution.release({ isComplete: false });
        await execution.release();
        const folder = path.join(dataDir, 'trials', 'the-rollout');
        assert.equal(existsSync(folder), stays);
        const warning = `not everything of a rollout was archived: its folder stays ${folder}`;
        assert.deepEqual(warnings.splice(0), stays ? [warning] : []);
        await warned.forget(['the-rollout']);
        assert.equal(existsSync(folder), false);
      }
    } finally {
      await warned.close();
    }
  });

  it('has all that it printed to itself, the next one in the same thread too', async () => {
    const single = make({}, 1);
    const printed = async (who: string): Promise<readonly string[]> => {
      const { result } = await run({ metadata: { act: 'chats', who }, wantsGrade: false }, single);
      const [file] = result.files.filter(({ name }) => name === 'console.log');
      return (await readFile(file?.path ?? '', 'utf8')).trimEnd().split('\n');
    };
    try {
      for (const who of ['first', 'second']) {
        const lines = Array.from({ length: 20 }, (_, index) => `${who} ${index + 1}`);
        assert.deepEqual(await printed(who), lines);
      }
    } finally {
      await single.close();
    }
  });

  it('does its work without a folder when none can be made', async () => {
    const file = path.join(dataDir, 'a-file');
    await writeFile(file, '');
    const patient = { ...systemClock, sleep: () => Promise.resolve() };
    const poor = new LocalBackend(options, {
      limits: { maxConcurrent: 1, maxQueueDepth: 1 },
      dataDir: file,
      baseDir: dataDir,
      clock: patient,
      logger: silentLogger,
      ...systemPython,
    });
    try {
      const { result } = await run({ ...doing('no-folder'), wantsGrade: false }, poor);
      assert.equal(result.sample?.messages[0]?.['content'], 'null');
    } finally {
      await poor.close();
    }
  });
});

describe('a deadline of the local backend', () => {
  const overruns: readonly (readonly [string, string])[] = [
    ['heeds', 'that heeds its signal'],
    ['swallows', 'that swallows the cancellation and answers'],
    ['sleeps', 'that goes on'],
    ['loops', 'in a busy loop'],
    ['blocks-and-answers', 'that blocks beyond it and then answers'],
  ];
  for (const [act, title] of overruns)
    it(`ends a workflow ${title}`, async () => {
      const { result } = await run({ ...doing(act), agentTimeoutMs: 200 });
      assert.match(
        result.errMessage ?? '',
        /^workflow exceeded its 0\.2s deadline( \(0\.\ds of it queued\))?$/,
      );
      assert.equal(result.errCategory, 'timeout');
      assert.equal(result.outcome.cause, 'WORKFLOW_TIMEOUT');
      assert.equal(result.sample, null);
    });

  for (const act of ['loops', 'swallows'])
    it(`ends a grader (${act}) and keeps the sample`, async () => {
      const { result, told } = await run({ ...doing('list', act), graderTimeoutMs: 200 });
      assert.equal(result.errMessage, 'grader exceeded its 0.2s deadline');
      assert.equal(result.outcome.cause, 'GRADER_TIMEOUT');
      assert.deepEqual(result.sample?.messages, [{ role: 'assistant', content: 'done' }]);
      assert.equal(told.completed[0]?.status, 'success');
    });

  it('is charged with the time in the queue, which the message tells', async () => {
    const { result } = await run({ ...doing('sleeps'), agentTimeoutMs: 60_200, queuedMs: 60_000 });
    assert.match(
      result.errMessage ?? '',
      /^workflow exceeded its 60\.2s deadline \(60\.\ds of it queued\)$/,
    );
  });

  for (const [agentTimeoutMs, queuedMs] of [
    [0, 0],
    [-5_000, 0],
    [1_000, 1_500],
  ] as const)
    it(`of ${agentTimeoutMs} ms after ${queuedMs} ms in the queue is over before the agent begins`, async () => {
      const { result, told } = await run({ ...doing('list'), agentTimeoutMs, queuedMs });
      assert.equal(result.outcome.cause, 'WORKFLOW_TIMEOUT');
      assert.deepEqual(told.begun, []);
    });

  it('that is absent limits nothing, and the grader has its own', async () => {
    const { result } = await run({ ...doing('blocks-and-answers'), agentTimeoutMs: null });
    assert.equal(result.sample?.reward, 0.7);
  });
});

describe('a grader of the local backend', () => {
  it('decides the reward after the completion is known', async () => {
    const { result, told } = await run({ ...doing('output'), label: 'yes' });
    assert.equal(result.status, 'success');
    assert.equal(result.sample?.reward, 0.7);
    assert.deepEqual(result.sample.metrics, { turns: 2, checked: true });
    assert.deepEqual(
      told.completed.map(({ status, sample }) => [status, sample?.reward]),
      [['success', null]],
    );
    assert.deepEqual(result.outcome.verdict, { rewards: { reward: 0.7 } });
    assert.equal(result.outcome.trainable, true);
    const said = told.completed[0]?.diagnostics ?? {};
    assert.deepEqual(['backend' in said, 'outcome' in said], [true, false]);
  });

  it('sees the label, which is the sample’s too', async () => {
    const { result } = await run({ ...doing('list', 'label'), label: 'yes' });
    assert.deepEqual([result.sample?.reward, result.sample?.label], [1, 'yes']);
  });

  const endings: readonly (readonly [string, string, Partial<ExecutionResult>, unknown])[] = [
    ['a reward of zero is a success', 'zero', { status: 'success' }, 0],
    ['a removed sample needs no reward', 'removes', { status: 'success' }, null],
    ['a reward outlives metrics that JSON cannot say', 'unsayable', { status: 'success' }, 1],
    ['NaN is refused', 'nan', { status: 'failure', errCategory: 'validation_error' }, null],
    [
      'an infinite reward is refused when it is assigned',
      'nan-assigned',
      { status: 'failure', errCategory: 'validation_error' },
      null,
    ],
    ['a text is no reward', 'text', { status: 'failure', errCategory: 'validation_error' }, null],
    [
      'no reward is a failure',
      'none',
      { status: 'failure', errCategory: 'validation_error' },
      null,
    ],
    [
      'an error keeps the workflow’s sample, without a reward',
      'throws',
      { status: 'failure', errCategory: 'agent_error' },
      null,
    ],
    [
      'process.exit ends the rollout only',
      'exits',
      { status: 'failure', errCategory: 'agent_error' },
      null,
    ],
  ];
  for (const [title, grade, expected, reward] of endings)
    it(`ends as it should: ${title}`, async () => {
      const { result } = await run(doing('list', grade));
      for (const [key, value] of Object.entries(expected))
        assert.equal(result[key as keyof ExecutionResult], value);
      assert.equal(result.sample?.reward ?? null, reward);
      assert.notEqual(result.sample, null);
    });

  const hindrances: readonly (readonly [string, Partial<ExecutionRequest>, RegExp])[] = [
    [
      'the rollout has neither label nor metadata',
      { metadata: null },
      /neither label nor metadata/,
    ],
    ['the workflow answered no sample', doing('nothing'), /no sample/],
  ];
  for (const [title, over, message] of hindrances)
    it(`is not asked when ${title}`, async () => {
      const { result, told } = await run(over);
      assert.equal(result.status, 'failure');
      assert.match(result.errMessage ?? '', message);
      assert.equal(told.completed[0]?.status, 'success');
      assert.equal(result.outcome.trainable, false);
    });

  it('that is not configured leaves the rollout ungraded', async () => {
    const ungraded = make({ grader: null });
    try {
      const { result } = await run(doing('list'), ungraded);
      assert.match(result.errMessage ?? '', /no grader/);
    } finally {
      await ungraded.close();
    }
  });
});

describe('the threads of the local backend', () => {
  it('serve another rollout when nothing is left at work in them', async () => {
    const calm = make();
    try {
      const served: string[] = [];
      for (const act of ['counts', 'counts', 'leaves-timer', 'counts']) {
        const { result } = await run({ ...doing(act), wantsGrade: false }, calm);
        served.push(String(result.sample?.messages[0]?.['content']));
      }
      assert.deepEqual(served, ['1', '2', '3', '1']);
    } finally {
      await calm.close();
    }
  });

  it('serve another rollout after one that asked its model, whose connection is kept', async () => {
    const calm = make();
    const model = createServer(
      (request, response) => void request.resume().once('end', () => response.end('{}')),
    );
    await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = model.address() as AddressInfo;
      const route = { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'route-key-1234' };
      const served: string[] = [];
      for (const act of ['asks', 'asks', 'asks']) {
        const { result } = await run({ ...doing(act), route, wantsGrade: false }, calm);
        served.push(String(result.sample?.messages[0]?.['content']));
      }
      assert.deepEqual(served, ['1', '2', '3']);
    } finally {
      await calm.close();
      model.close();
      model.closeAllConnections();
    }
  });

  it('have the variables that they are given and no others', async () => {
    const variables = { OWN: 'mine', UNSET: undefined };
    const own = localBackend(options, { dataDir, variables });
    try {
      const { result } = await run({ ...doing('variables'), wantsGrade: false }, own);
      assert.equal(result.sample?.messages[0]?.['content'], '["mine",null,null]');
    } finally {
      await own.close();
    }
  });

  it('that loop leave the server its time: others finish, and an abort ends them', async () => {
    const { hooks } = listening();
    const stuck = backend.execute(requestOf({ ...doing('loops'), agentTimeoutMs: null }), hooks);
    const { result } = await run(doing('list'));
    assert.equal(result.status, 'success');
    const receipt = await stuck.abort(new Error('cancelled'));
    assert.deepEqual([receipt.isComplete, receipt.confirmedGone], [true, ['thread']]);
    assert.equal(await stuck.abort(new Error('again')), receipt);
    await assert.rejects(stuck.result, /cancelled/);
    assert.deepEqual(backend.health(), {
      status: 'ok',
      concurrency: { max_concurrent: 3, queued: 0, running: 0 },
    });
  });

  const refused: readonly (readonly [string, string])[] = [
    [`${module}:Nobody`, 'exports no class'],
    [`${module}:notAClass`, 'exports no class'],
    [`${module}:NoMethod`, 'has no method run'],
    ['missing.ts:Workflow', 'Cannot find module'],
  ];
  for (const [workflow, message] of refused)
    it(`do not start with ${path.basename(workflow)}`, async () => {
      const broken = make({ workflow });
      await assert.rejects(broken.start(never), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'WORKFLOW_INVALID');
        assert.match(error.message, new RegExp(message));
        return true;
      });
      await broken.close();
    });

  it('are not made without a workflow, in our own words', () => {
    for (const workflow of [undefined, null])
      assert.throws(() => make({ workflow, memory_mb: 1 }), {
        code: 'CONFIG_INVALID',
        field: 'backend.local.workflow',
        message: 'the backend local runs a workflow, and none is set',
      });
  });

  it('are not made from options that make no sense, which are all named', () => {
    assert.throws(() => make({ workflow: 'no-colon', memory_mb: 1, other: 1 }), {
      code: 'CONFIG_INVALID',
      message: /workflow.*memory_mb.*other/s,
    });
  });
});
