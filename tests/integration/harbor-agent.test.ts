/** Agent classes that stand on the package `harbor`, unchanged, in the trials of a server; their model is the controller's. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { harborPeerDir, harborPeerRecord, harborPython } from '../../scripts/setup/harbor-peer.js';
import { RunnerBroken } from '../../src/runner/runner-ended.ts';
import { RunnerProcess } from '../../src/runner/runner-process.ts';
import { trialResultSchema } from '../../src/wire/harbor/trial-result.ts';
import type { HarborAgentSettings } from '../../src/wire/runner/harbor-agent-messages.ts';
import { ChatUpstream, type ReceivedCall } from '../fakes/chat-upstream.ts';
import { taskFolder } from '../fakes/task-folder.ts';
import { startSlipway } from '../support/slipway-cli.ts';
import { until } from '../support/until.ts';
import { answerTask } from '../trial/trial-bench.ts';
import {
  answerYes,
  harborAgentsDir,
  modelKey,
  openHarborBench,
  reasonOf,
  type HarborBench,
} from './harbor-agents/harbor-bench.ts';

describe('an agent of Harbor’s that calls its model from the host', { timeout: 240_000 }, () => {
  let bench: HarborBench;
  const held = new Map<string, () => void>();
  before(async () => {
    bench = await openHarborBench('ChatAgent', async (response, call) => {
      const { user } = bodyOf(call) as { user: string };
      if (isHolding) await new Promise<void>((resolve) => held.set(user, resolve));
      await answerYes(response, call);
    });
  });
  after(() => bench[Symbol.asyncDispose]());
  let isHolding = false;

  test('solves the task by what the controller’s model says', async (context) => {
    context.diagnostic(`on ${await harborPeerRecord()}`);
    const result = await bench.rollOut('chat');
    assert.equal(result.status, 'success', reasonOf(result));
    assert.equal(result.reward, 1);
    const [call] = bench.upstream.received;
    assert.ok(call !== undefined);
    assert.equal(call.url, '/v1/chat/completions');
    assert.equal(call.headers.authorization, `Bearer ${modelKey}`);
    const { model, stream } = bodyOf(call);
    assert.deepEqual({ model, stream }, { model: 'some-model', stream: false });
  });

  test('a process that is killed ends its own rollout, and no other', async () => {
    isHolding = true;
    const results = [bench.rollOut('one'), bench.rollOut('two')];
    await until('both ask their model', () => held.size === 2);
    const [killed = ''] = held.keys();
    process.kill(Number(killed), 'SIGKILL');
    const first = await Promise.race(results);
    assert.equal(first.status, 'failure');
    assert.match(reasonOf(first), /killed from outside, or for lack of memory/);
    isHolding = false;
    for (const release of held.values()) release();
    const statuses = (await Promise.all(results)).map(({ status }) => status);
    assert.deepEqual(statuses.toSorted(), ['failure', 'success']);
  });
});

describe('an agent of Harbor’s that is installed in the sandbox', { timeout: 240_000 }, () => {
  test('calls the controller’s model from there, and its failure has Harbor’s name', async () => {
    let isRefusing = false;
    await using bench = await openHarborBench('InstalledAgent', async (response, call) => {
      if (isRefusing) response.writeHead(429).end('{}');
      else await answerYes(response, call);
    });
    const result = await bench.rollOut('installed');
    assert.equal(result.status, 'success', reasonOf(result));
    assert.equal(result.reward, 1);
    assert.equal(bench.upstream.received[0]?.headers.authorization, `Bearer ${modelKey}`);
    isRefusing = true;
    const refused = await bench.rollOut('refused');
    assert.equal(refused.status, 'failure');
    assert.match(reasonOf(refused), /"harbor_exception_type":"ApiRateLimitError"/);
  });
});

test('slipway run takes the class by its import path, and a Python for it', async () => {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-harbor-agent-'));
  try {
    await using upstream = await ChatUpstream.start(answerYes);
    await using task = await taskFolder(answerTask);
    const { ended } = startSlipway(
      [
        ...['run', '--agent-import-path', 'harbor_agents:ChatAgent', '--python', harborPython()],
        ...['--model', 'openai/some-model', '--ak', `api_base=${upstream.url}/v1`],
        ...['--ak', `llm_kwargs={"api_key": "${modelKey}"}`, '-p', task.dir, '-o', root],
        ...['--job-name', 'job', '--quiet', '--yes'],
      ],
      {
        stateDir: root,
        cwd: harborAgentsDir,
        variables: { SLIPWAY_PYTHONPATH: harborPeerDir(), PYTHONDONTWRITEBYTECODE: '1' },
      },
    );
    const { exitCode, stderr } = await ended;
    assert.equal(exitCode, 0, stderr);
    const [trial] = (await readdir(path.join(root, 'job'))).filter((name) => name.includes('__'));
    const text = await readFile(path.join(root, 'job', trial ?? '', 'result.json'), 'utf8');
    const result = trialResultSchema.parse(JSON.parse(text));
    assert.deepEqual(result.agent_info, {
      name: 'chat-agent',
      version: '1.2.3',
      model_info: { name: 'some-model', provider: 'openai' },
    });
    assert.equal(result.agent_result?.n_input_tokens, 7);
    assert.equal(result.agent_result.n_output_tokens, 5);
    assert.deepEqual(result.agent_result.metadata, {
      return_code: 0,
      session: `${result.trial_name}__agent`,
    });
    assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    assert.ok(!text.includes(modelKey));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

test('an agent of Harbor’s own is refused under another name, and taken under its own', async () => {
  const load = async (importPath: string): Promise<unknown> => {
    const runner = new RunnerProcess({
      role: 'harbor-agent',
      interpreter: { python: harborPython(), path: [harborPeerDir(), harborAgentsDir] },
      settings: { ...loneSettings, import_path: importPath },
      variables: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    });
    try {
      return (await runner.ready).details['name'];
    } finally {
      await runner.terminate();
    }
  };
  await assert.rejects(
    load('harbor_agents:Borrowed'),
    (error) =>
      error instanceof RunnerBroken &&
      error.message.includes(
        "harbor_agents:Borrowed is Harbor's own agent harbor.agents.nop:NopAgent",
      ),
  );
  assert.equal(await load('harbor.agents.nop:NopAgent'), 'nop');
});

const loneSettings: Omit<HarborAgentSettings, 'import_path'> = {
  ...{ trial_dir: '/trial', logs_dir: '/trial/agent', session_id: 'trial__agent' },
  ...{ model_name: null, mcp_servers: [], skills_dir: null, extra_env: {}, kwargs: {} },
  environment_logs_dir: '/logs/agent',
};

function bodyOf({ body }: ReceivedCall): Record<string, unknown> {
  return JSON.parse(body.toString()) as Record<string, unknown>;
}
