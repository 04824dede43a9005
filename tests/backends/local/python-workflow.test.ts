/** Workflows and graders in Python, plain classes, by the machine's own interpreter. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { LocalBackend } from '../../../src/backends/local/local-backend.ts';
import type { ExecutionRequest, ExecutionResult } from '../../../src/backends/execution-backend.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { until } from '../../support/until.ts';
import { listening, localBackend, requestOf, runOn } from './local-bench.ts';

const file = path.join(import.meta.dirname, 'user_code.py');
const options = { workflow: `${file}:Workflow`, grader: `${file}:TestGrader` };
let dataDir = '';
let backend: LocalBackend;

const make = (over: Readonly<Record<string, unknown>> = {}, maxConcurrent = 3): LocalBackend =>
  localBackend(
    { ...options, workflow_config: { name: 'test' }, ...over },
    { dataDir, maxConcurrent },
  );
const run = (over: Partial<ExecutionRequest>, using = backend) => runOn(using, over);
const doing = (act: string, grade = 'seven') => ({ metadata: { act, grade } });
const contentOf = ({ sample }: ExecutionResult) => sample?.messages.at(-1)?.['content'];

/** One after the other: `isWarm` tells whether the second found what the first left in its process. */
async function twice(act: string, using: LocalBackend) {
  await run({ ...doing('counts'), wantsGrade: false }, using);
  const first = await run({ ...doing(act), wantsGrade: false }, using);
  const { result } = await run({ ...doing('counts'), wantsGrade: false }, using);
  return { first: first.result, isWarm: contentOf(result) !== '1' };
}

before(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'slipway-python-'));
  backend = make();
  await backend.start(never);
});
after(async () => {
  await backend.close();
  await rm(dataDir, { recursive: true, force: true });
});

describe('a workflow in Python', () => {
  it('gets the prompt, its configuration, the metadata and the model unchanged', async () => {
    const { result } = await run(doing('echo'));
    const [prompt, echo] = result.sample?.messages ?? [];
    assert.deepEqual(prompt, { role: 'user', content: 'hello', own: { key: 1 } });
    assert.deepEqual(echo, {
      role: 'assistant',
      metadata: { act: 'echo', grade: 'seven' },
      config: { name: 'test' },
      model: { base_url: 'http://127.0.0.1:1/v1', api_key: 'route-key-1234' },
    });
  });

  const answers: readonly (readonly [string, string, (r: ExecutionResult) => unknown, unknown])[] =
    [
      ['a list is its messages', 'list', (r) => r.sample?.messages.length, 1],
      ['a dict brings metrics', 'output', (r) => r.sample?.metrics, { turns: 2 }],
      ['nothing is no sample', 'nothing', (r) => [r.status, r.sample], ['success', null]],
      [
        'no messages are no sample',
        'null-messages',
        (r) => [r.status, r.sample],
        ['success', null],
      ],
      ['an answer that nobody awaits', 'plain', (r) => r.sample?.messages.length, 1],
      ['what it reads is empty', 'reads', contentOf, '|nothing'],
    ];
  for (const [title, act, look, expected] of answers)
    it(`may answer: ${title}`, async () => {
      const { result } = await run({ ...doing(act), wantsGrade: false });
      assert.deepEqual(look(result), expected);
    });

  const failures: readonly (readonly [
    act: string,
    cause: string,
    message: RegExp,
    category: string,
    title: string,
  ])[] = [
    ['text', 'SAMPLE_INVALID', /str is neither/, 'validation_error', 'a text is no sample'],
    ['unknown-key', 'SAMPLE_INVALID', /reward/, 'validation_error', 'an unknown key is refused'],
    ['nan-metric', 'SAMPLE_INVALID', /metrics.loss/, 'validation_error', 'NaN is no metric'],
    ['circular', 'SAMPLE_INVALID', /holds itself/, 'validation_error', 'a circle has no JSON'],
    ['no-json', 'SAMPLE_INVALID', /object has no JSON/, 'validation_error', 'an object has none'],
    [
      'too-long',
      'SAMPLE_INVALID',
      /longer than 16 MiB/,
      'validation_error',
      'a sample has a limit',
    ],
    ['throws', 'WORKFLOW_FAILED', /^the tool broke$/, 'agent_error', 'an error keeps its words'],
    ['throws-value', 'WORKFLOW_FAILED', /^a wrong value$/, 'validation_error', 'a wrong value'],
    ['throws-key', 'WORKFLOW_FAILED', /absent/, 'agent_error', 'a missing key is no validation'],
    ['throws-timeout', 'WORKFLOW_FAILED', /^the tool took/, 'timeout', 'its own timeout'],
    ['throws-secret', 'WORKFLOW_FAILED', /^refused: \[REDACTED\]$/, 'agent_error', 'no secret'],
    ['throws-wordless', 'WORKFLOW_FAILED', /Indescribable/, 'agent_error', 'an error of no words'],
    ['exits', 'WORKFLOW_FAILED', /exit code 3/, 'agent_error', 'sys.exit ends its process'],
    ['crashes', 'WORKFLOW_FAILED', /SIGSEGV/, 'agent_error', 'a crash names its signal'],
  ];
  for (const [act, cause, message, category, title] of failures)
    it(`fails with ${cause}: ${title}`, async () => {
      const { result, told } = await run(doing(act));
      assert.equal(result.status, 'failure');
      assert.equal(result.outcome.cause, cause);
      assert.equal(result.outcome.stage, 'agent');
      assert.match(result.errMessage ?? '', message);
      assert.equal(result.errCategory, category);
      assert.deepEqual(told.completed, []);
    });

  it('that is killed ends typed, by the machine and to be tried again; others go on', async () => {
    const request = requestOf({ ...doing('heeds'), agentTimeoutMs: null });
    const { hooks, told } = listening();
    const other = backend.execute(request, hooks);
    await until('the other has begun', () => told.stages.includes('running workflow'));
    const { result } = await run(doing('kills-itself'));
    assert.deepEqual(result.outcome, {
      ...{ stage: 'agent', cause: 'RUNNER_FAILED', trainable: false, retryable: true },
      verdict: null,
    });
    assert.equal(result.errMessage, 'the workflow was killed from outside, or for lack of memory');
    assert.equal((await run(doing('list'))).result.status, 'success');
    let hasEnded = false;
    void other.result.finally(() => (hasEnded = true)).catch(() => undefined);
    await Promise.resolve();
    assert.equal(hasEnded, false);
    await other.abort(new Error('enough'));
  });

  it('whose constructor fails is a failed workflow', async () => {
    const broken = make({ workflow_config: { name: 'broken' } }, 1);
    try {
      await broken.start(never);
      const { result } = await run(doing('list'), broken);
      assert.equal(result.outcome.cause, 'WORKFLOW_FAILED');
      assert.equal(result.errMessage, 'no such model');
    } finally {
      await broken.close();
    }
  });

  it('may be configured by an object, of which every rollout gets a copy', async () => {
    const configured = make({ workflow_config: `${file}:usual` }, 1);
    try {
      for (let time = 0; time < 2; time += 1)
        assert.deepEqual(contentOf((await run(doing('spoils-config'), configured)).result), [1, 2]);
    } finally {
      await configured.close();
    }
  });

  it('keeps its artifacts, and what it printed to the last line and past Python', async () => {
    const [kept] = (await run(doing('artifacts'))).result.files;
    assert.equal(await readFile(path.join(kept?.path ?? '', 'note.txt'), 'utf8'), 'kept');
    const runs = await Promise.all(
      ['one', 'two', 'three', 'four'].map((who) =>
        run({ metadata: { act: 'chats', grade: 'seven', who } }),
      ),
    );
    for (const [at, { result }] of runs.entries()) {
      const who = ['one', 'two', 'three', 'four'][at] ?? '';
      const printed = await readFile(result.files.at(-1)?.path ?? '', 'utf8');
      const lines = Array.from({ length: 20 }, (_, line) => `${who} ${line + 1}`);
      assert.deepEqual(printed.trimEnd().split('\n').sort(), [...lines, 'past Python'].sort());
    }
  });
});

describe('the deadline of code in Python', () => {
  for (const [act, title] of [
    ['heeds', 'that is cancelled'],
    ['swallows', 'that swallows its cancellation and answers'],
    ['refuses', 'that swallows every cancellation'],
    ['loops', 'in a loop that never waits'],
    ['blocks', 'that blocks beyond it and answers'],
  ] as const)
    it(`ends a workflow ${title}`, async () => {
      await run(doing('list')); // so that a process is ready
      const { result, told } = await run({ ...doing(act), agentTimeoutMs: 300 });
      assert.deepEqual(told.begun, ['begun']);
      assert.equal(result.outcome.cause, 'WORKFLOW_TIMEOUT');
      assert.match(result.errMessage ?? '', /^workflow exceeded its 0.3s deadline/);
      assert.equal(result.errCategory, 'timeout');
    });

  it('is the grader’s own', async () => {
    const { result } = await run({ ...doing('list', 'swallows'), graderTimeoutMs: 200 });
    assert.equal(result.outcome.cause, 'GRADER_TIMEOUT');
    assert.equal(result.sample?.messages.length, 1);
  });
});

describe('a grader in Python', () => {
  it('sees the sample, changes it, finds the model, and its reward is the result', async () => {
    const { result, told } = await run({ ...doing('output', 'edits'), label: 'seven' });
    assert.equal(told.completed[0]?.status, 'success');
    assert.deepEqual(result.sample, {
      messages: [
        { role: 'assistant', content: 'done' },
        { role: 'assistant', content: 'more' },
      ],
      ...{ label: 'seven', reward: 0.25, isRemoved: false },
      metrics: { turns: 2, seen: 'seven' },
      extraFields: { judge: 'http://127.0.0.1:1/v1' },
      trajectoryMessages: result.sample?.messages,
    });
  });

  const grades: readonly (readonly [string, string, string, number | null, string])[] = [
    ['zero', 'success', 'done', 0, 'zero is a reward'],
    ['removes', 'success', 'done', null, 'a removed sample needs none'],
    ['unsayable', 'success', 'done', 1, 'an earned reward outlives what cannot be said'],
    ['none', 'failure', 'verifier', null, 'no reward is a failure'],
    ['nan', 'failure', 'verifier', null, 'NaN is refused where it is set'],
    ['text', 'failure', 'verifier', null, 'a text is refused'],
    ['throws', 'failure', 'verifier', null, 'an error leaves the sample'],
    ['exits', 'failure', 'verifier', null, 'the end of its process leaves the sample'],
  ];
  for (const [grade, status, stage, reward, title] of grades)
    it(`ends as ${status}: ${title}`, async () => {
      const { result } = await run(doing('list', grade));
      assert.equal(result.status, status);
      assert.equal(result.outcome.stage, stage);
      assert.equal(result.sample?.reward, reward);
    });
});

describe('a process of Python', () => {
  for (const [act, isWarm, title] of [
    ['list', true, 'serves the next rollout'],
    ['works-in-thread', true, 'serves the next one after work in the loop’s own threads'],
    ['leaves-task', false, 'in which a task is still at work serves nobody else'],
    ['leaves-thread', false, 'in which a thread is still at work serves nobody else'],
  ] as const)
    it(title, async () => {
      const single = make({}, 1);
      try {
        assert.equal((await twice(act, single)).isWarm, isWarm);
      } finally {
        await single.close();
      }
    });

  it('takes what its code started along', async () => {
    const single = make({}, 1);
    try {
      const { first } = await twice('leaves-child', single);
      const proc = `/proc/${String(contentOf(first))}`;
      await until('the child has ended', () => !existsSync(proc));
    } finally {
      await single.close();
    }
  });

  it('without memory fails its rollout, not the server', async () => {
    const small = make({ memory_mb: 128 }, 1);
    try {
      const { result } = await run(doing('eats-memory'), small);
      assert.equal(result.outcome.cause, 'WORKFLOW_FAILED');
      assert.equal(result.errMessage, 'ran out of memory');
      assert.equal((await run(doing('list'), small)).result.status, 'success');
    } finally {
      await small.close();
    }
  });

  it('is gone when its rollout was aborted', async () => {
    const request = requestOf(doing('pid'));
    const execution = backend.execute(request, listening().hooks);
    const pidFile = path.join(dataDir, 'trials', request.id, 'artifacts', 'pid');
    let pid = '';
    await until('the workflow runs', async () => {
      pid = await readFile(pidFile, 'utf8').catch(() => '');
      return pid !== '';
    });
    const receipt = await execution.abort(new Error('enough'));
    assert.deepEqual([receipt.isComplete, receipt.confirmedGone], [true, ['process']]);
    assert.ok(!existsSync(`/proc/${pid}`));
  });
});

describe('code in Python that cannot be used', () => {
  const broken: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp])[] = [
    ['no such module', { workflow: 'not_there:W' }, /No module named 'not_there'/],
    ['no such file', { workflow: './no.py:W' }, /No such file.*no\.py/],
    ['no such class', { workflow: `${file}:Absent` }, /has no Absent/],
    ['no such method', { grader: `${file}:NoMethod` }, /no method grade/],
    ['a failing import', { workflow: './fails.py:W' }, /ZeroDivisionError.*fails\.py, line 2/s],
  ];
  before(async () => {
    await writeFile(path.join(dataDir, 'fails.py'), 'one = 1\none / 0\n');
  });
  for (const [title, over, message] of broken)
    it(`is refused at the start, with Python’s own words: ${title}`, async () => {
      const unusable = make(over, 1);
      try {
        await assert.rejects(unusable.start(never), { code: 'WORKFLOW_INVALID', message });
      } finally {
        await unusable.close();
      }
    });

  it('is refused with the name of a package that its Python does not have', async () => {
    await writeFile(path.join(dataDir, 'needs.py'), 'import no_such_package.part\n');
    const unusable = make({ workflow: './needs.py:W' }, 1);
    try {
      await assert.rejects(unusable.start(never), {
        code: 'WORKFLOW_PACKAGE_MISSING',
        message:
          /does not have the package no_such_package: ModuleNotFoundError.*needs\.py, line 1/s,
        field: 'python.interpreter',
      });
    } finally {
      await unusable.close();
    }
  });

  it('is refused when there is no such interpreter', async () => {
    const interpreter = { python: path.join(dataDir, 'no-python'), path: [] };
    const unusable = localBackend(options, { dataDir, interpreter });
    await assert.rejects(unusable.start(never), {
      code: 'WORKFLOW_INVALID',
      field: 'python.interpreter',
      message: /cannot be started/,
    });
    await unusable.close();
  });

  it('is refused when the interpreter is another program', async () => {
    const unusable = localBackend(options, { dataDir, interpreter: { python: 'false', path: [] } });
    await assert.rejects(unusable.start(never), {
      code: 'WORKFLOW_INVALID',
      message: /exit code 1/,
    });
    await unusable.close();
  });

  it('is refused when only one of the two is Python', () => {
    for (const over of [{ grader: './grade.ts:Grader' }, { workflow: './run.ts:Workflow' }])
      assert.throws(() => make(over), { code: 'CONFIG_INVALID', field: 'backend.local' });
  });
});
