/** Workflows and graders in real sandboxes, which reach nothing but their model. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ExecutionRequest, ExecutionResult } from '../../../src/backends/execution-backend.ts';
import { Scope } from '../../../src/core/scope.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { TrialRequest } from '../../../src/trial/trial-options.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { realProviders, type OpenProvider } from '../../support/real-providers.ts';
import { writeWheels } from '../../fakes/wheels.ts';
import { until } from '../../support/until.ts';
import { HeardHooks, requestFor } from '../native/native-bench.ts';
import {
  harborBench,
  projectDir,
  templateTask,
  whyNoPython,
  type HarborBench,
} from './harbor-bench.ts';

const local = realProviders().find(({ kind }) => kind === 'local');
const skip = local?.skip ?? whyNoPython() ?? false;
const image = 'debian:bookworm-slim';
const key = 'route-key-of-harbor';

describe('the backend harbor in sandboxes', { skip, concurrency: 2 }, () => {
  const scope = new Scope();
  let open: OpenProvider;
  let upstream: ChatUpstream;
  let bench: HarborBench;
  let count = 0;
  const trials: TrialRequest[] = [];

  before(async () => {
    open = await local!.open();
    scope.defer(() => open.close());
    await open.provider.preflight(never);
    upstream = await ChatUpstream.start((response) => {
      response.setHeader('content-type', 'application/json');
      const message = { role: 'assistant', content: 'four' };
      response.end(JSON.stringify({ choices: [{ message }] }));
    });
    scope.defer(async () => await upstream[Symbol.asyncDispose]());
    const wheels = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-wheels-'));
    scope.defer(() => wheels.remove());
    writeWheels(wheels.path, [{ name: 'quizwords', version: '3' }]);
    bench = await harborBench({
      provider: open.provider,
      files: templateTask(image),
      options: {
        ...{ agent: 'quiz.flows:Ask', workflow_config: { turns: 2 }, code_dir: projectDir },
        ...{ grader: 'quiz.flows:Grade', grader_config: { right: 0.75 }, prewarm: true },
        requirements: [path.join(wheels.path, 'quizwords-3-py3-none-any.whl')],
      },
      onTrial: (trial) => trials.push(trial),
    });
    scope.defer(async () => await bench[Symbol.asyncDispose]());
  });

  after(async () => {
    await scope[Symbol.asyncDispose]();
  });

  const request = (over: Partial<ExecutionRequest> = {}): ExecutionRequest => {
    count += 1;
    return {
      ...requestFor(null),
      ...{ id: `harbor-${count}`, metadata: {}, label: 'four', secrets: [key] },
      prompt: [{ role: 'user', content: `two and ${count}` }],
      route: { baseUrl: `http://127.0.0.1:${upstream.port}/v1/a%2fb`, apiKey: key },
      ...over,
    };
  };

  const filesOf = async (result: ExecutionResult, name: string): Promise<readonly string[]> => {
    const found = result.files.find((file) => file.name === name);
    const entries = await readdir(found!.path, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  };

  it('runs workflow and grader, whose sample, reward, metrics and artifacts come out', async () => {
    const hooks = new HeardHooks();
    const asked = request({ metadata: { act: 'tells' }, label: 'four [REDACTED]' });
    const execution = bench.backend.execute(asked, hooks);
    const result = await execution.result;
    assert.equal(result.status, 'success', result.errMessage ?? '');
    const { sample } = result;
    // The grader saw the key, and nobody after it does.
    assert.deepEqual(sample?.messages.at(-1), { role: 'assistant', content: 'four [REDACTED]' });
    assert.deepEqual([sample.reward, sample.metrics], [0, { turns: 2, graded: 1 }]);
    assert.equal(hooks.completed.length, 1);
    assert.deepEqual([hooks.completed[0]?.sample?.metrics], [{ turns: 2 }]);
    assert.equal(result.diagnostics?.['backend'], 'harbor');
    const call = upstream.received.find(({ body }) =>
      body.includes(String(asked.prompt[0]?.['content'])),
    );
    assert.deepEqual(
      [call?.url, call?.headers.authorization],
      ['/v1/a%2fb/chat/completions', `Bearer ${key}`],
    );
    const artifacts = await filesOf(result, 'artifacts');
    assert.deepEqual([...artifacts].sort(), ['asked.txt', 'graded.txt', 'manifest.json']);
    const logs = result.files.find(({ name }) => name === 'logs/agent')!.path;
    const input = await readFile(path.join(logs, 'container_input.json'), 'utf8');
    assert.equal(input.includes(key), false, 'a key stays');
    assert.equal('label' in (JSON.parse(input) as object), false, 'the workflow knows the label');
    assert.match(await readFile(path.join(logs, 'workflow.log'), 'utf8'), /does: tells/);
    await execution.release();
    assert.equal(existsSync(logs), false, 'the folder of a successful trial stays');
    const staged = await readdir(path.join(bench.dataDir, 'rollouts'));
    assert.equal(staged.includes(asked.id), false, 'what was staged stays');
  });

  it('asks for the template’s Python once, installs the packages for it, and sets the template up, before anything is served', async () => {
    const [asked, prepared, ...rollouts] = trials;
    for (const trial of [asked, prepared]) {
      assert.equal(trial?.config.install_only, true);
      assert.equal(trial.config.verifier.disable, true);
      assert.deepEqual([trial.config.agent.env, trial.config.agent.kwargs], [{}, {}]);
    }
    assert.ok(rollouts.every(({ config }) => !config.install_only));
    const places = (trial: TrialRequest | undefined) => trial?.layers?.map(({ at }) => at);
    assert.deepEqual(places(asked), ['/opt/slipway/runner']);
    assert.deepEqual(places(prepared), [
      ...['/opt/slipway/runner', '/opt/slipway/code', '/opt/slipway/packages'],
    ]);
    const result = await bench.backend.execute(
      request({ metadata: { act: 'imports' }, wantsGrade: false }),
      new HeardHooks(),
    ).result;
    assert.equal(
      result.sample?.messages.at(-1)?.['content'],
      'quizwords 3',
      result.errMessage ?? '',
    );
    const left = await readdir(path.join(bench.dataDir, 'trials'));
    assert.deepEqual(
      left.filter((name) => !name.startsWith('native-harbor-')),
      [],
    );
    assert.deepEqual(
      (await readdir(path.join(bench.dataDir, 'rollouts'))).filter((name) =>
        name.startsWith('prewarm'),
      ),
      [],
    );
  });

  it('names a task that cannot be prepared, and its own option', async () => {
    const failing = harborBench({
      provider: open.provider,
      files: templateTask(image),
      options: {
        agent: 'quiz.flows:Ask',
        sandbox_python: 'python3',
        prewarm: [{}, 'no reference'],
      },
    });
    await assert.rejects(failing, (error) => {
      assert.ok(isRolloutError(error, 'PREWARM_FAILED'));
      assert.equal(error.field, 'backend.harbor.prewarm');
      assert.match(
        error.message,
        /^2 of 2 .*\ntemplate \[AGENT_SETUP_FAILED\]; .*\nno reference \[REFERENCE_INVALID\]; no folder/,
      );
      return true;
    });
  });

  const endings = [
    {
      what: 'a right answer',
      metadata: {},
      expected: ['success', null, null, 0.75, false],
    },
    {
      what: 'a workflow that throws',
      metadata: { act: 'throws' },
      expected: ['failure', 'WORKFLOW_FAILED', 'agent_error', null, false],
    },
    {
      what: 'a workflow that ends its process',
      metadata: { act: 'exits' },
      expected: ['failure', 'WORKFLOW_FAILED', 'agent_error', null, false],
    },
    {
      what: 'a workflow that leaves no sample',
      metadata: { act: 'none' },
      expected: ['failure', 'SAMPLE_INVALID', 'validation_error', null, null],
    },
    {
      what: 'a grader that throws',
      metadata: { grade: 'throws' },
      expected: ['failure', 'GRADER_FAILED', 'agent_error', null, false],
    },
    {
      what: 'a grader that removes the sample',
      metadata: { grade: 'removes' },
      expected: ['success', null, null, null, true],
    },
  ] as const;
  for (const { what, metadata, expected } of endings)
    it(`ends after ${what} as it should`, async () => {
      const execution = bench.backend.execute(request({ metadata }), new HeardHooks());
      const result = await execution.result;
      const { status, outcome, errCategory, sample } = result;
      assert.deepEqual(
        [status, outcome.cause, errCategory, sample?.reward ?? null, sample?.isRemoved ?? null],
        expected,
      );
      if (outcome.cause === 'GRADER_FAILED') {
        assert.equal(result.errMessage, 'the grader does not want to');
        assert.ok((await filesOf(result, 'artifacts')).includes('graded.txt'));
        assert.equal(sample?.messages.length, 2);
      }
      await execution.release();
      const trial = result.files[0] === undefined ? '' : path.dirname(result.files[0].path);
      assert.equal(existsSync(trial), status === 'failure', 'what failed stays, and nothing else');
    });

  it('says what is missing where the image has no Python', async () => {
    await using other = await harborBench({
      provider: open.provider,
      files: templateTask(image),
      options: { agent: 'quiz.flows:Ask', sandbox_python: 'python3', code_dir: projectDir },
    });
    const { result } = other.backend.execute(request(), new HeardHooks());
    const { status, outcome, errMessage } = await result;
    assert.deepEqual([status, outcome.cause], ['failure', 'AGENT_SETUP_FAILED']);
    assert.equal(errMessage, 'the sandbox has no Python that runs as python3');
  });

  it('is aborted while its workflow runs, and leaves nothing of it', async () => {
    const hooks = new HeardHooks();
    const execution = bench.backend.execute(request({ metadata: { act: 'sleeps' } }), hooks);
    await until('the workflow runs', () => hooks.heard.includes('running agent'));
    const receipt = await execution.abort(new Error('enough'));
    assert.equal(receipt.isComplete, true, receipt.problem ?? '');
    await execution.result.catch(() => undefined);
    assert.deepEqual(hooks.completed, []);
  });
});
