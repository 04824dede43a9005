/** One rollout of a command line agent by a server: `POST /rollout`, on the controller's model, whose key the agent never has. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { auditSamples } from '../../../src/app/audit-samples.ts';
import { serveEngine } from '../../../src/app/serve-engine.ts';
import { RolloutController } from '../../../src/callbacks/rollout-controller.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { capturedCallsName } from '../../../src/gateway/capture/file-capture.ts';
import { readCalls } from '../../../src/gateway/capture/read-calls.ts';
import { validateTrajectory } from '../../../src/trajectory/validate.ts';
import type { AtifStep, AtifTrajectory } from '../../../src/wire/atif/atif.ts';
import { taskFolder } from '../../fakes/task-folder.ts';
import { startServeProcess } from '../../support/serve-process.ts';
import { filesBelow } from '../../support/files-below.ts';
import { scriptTask, upstreamKey } from './cli-bench.ts';

export async function rollOutOnce(agent: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-cli-rollout-'));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const script = [
    { shell: 'echo yes > /app/answer', files: { answer: 'yes\n' } },
    { say: 'All is done.' },
  ];
  const task = stack.use(await taskFolder(scriptTask(script)));
  const engine = stack.use(
    await serveEngine(
      { policy: 'tool-script', port: '0', apiKeyEnv: 'ENGINE_KEY' },
      { ENGINE_KEY: upstreamKey },
    ),
  );
  const server = stack.use(
    await startServeProcess(
      [
        ...['--backend', 'native', '--backend-native-agent', agent],
        ...['--backend-native-model', 'openai/mock', '--backend-native-environment', 'local'],
        ...['--backend-native-allow-unverified-agent', 'true'],
        ...['--gateway-capture', 'true', '--gateway-engine-kind', 'vllm'],
      ],
      { stateDir: root },
    ),
  );
  const controller = stack.use(new RolloutController({ serverUrl: server.url }));
  await controller.start();
  const result = await controller.run({
    rollout_id: `${agent}-1`,
    initial_messages: [],
    chat_completions_url: `${engine.url}/v1`,
    llm_api_key: upstreamKey,
    metadata: { harbor_task: task.dir, slipway_train: true },
  });
  const said = JSON.stringify([result.completion, result.grader]);
  assert.equal(result.status, 'success', said);
  assert.equal(result.reward, 1, said);
  await server.stop();
  const files = await filesBelow(root);
  // The store keeps what was asked, for a server that is started again.
  for (const [name, text] of files)
    assert.ok(name.includes('store.sqlite') || !text.includes(upstreamKey), `${name}: the key`);
  const archived = [...files].find(([name]) => /archive\/.*trajectory\.json$/.test(name));
  const trajectory = JSON.parse(archived?.[1] ?? 'null') as AtifTrajectory | null;
  assert.deepEqual(validateTrajectory(trajectory), []);
  assert.equal(trajectory?.agent.name, agent);
  const isWork = ({ tool_calls: made, message }: AtifStep): boolean =>
    (made ?? []).length > 0 || JSON.stringify(message).includes(String.raw`\nyes\n`);
  const own = trajectory.steps.filter(({ source }) => source === 'agent');
  assert.ok(own.some(isWork), 'the call of its own shell, or its edit');
  await checkCaptured(root, [...files.keys()], trajectory.steps);
  const samples = [...files.keys()].find((name) => /archive\/.*samples\.ndjson$/.test(name));
  const audited = await auditSamples(path.join(root, samples ?? ''), never);
  const sampled = own.flatMap(({ metrics }) => metrics?.completion_token_ids ?? []);
  assert.deepEqual([audited.trainedTokens, audited.callsWithoutIds], [sampled.length, 0]);
}

/** Every step of the agent is a call that the gateway has kept, with the ids that were sampled. */
async function checkCaptured(
  root: string,
  names: readonly string[],
  steps: readonly AtifStep[],
): Promise<void> {
  const file = names.find((name) => name.includes('archive') && name.endsWith(capturedCallsName));
  assert.ok(file !== undefined, 'captured calls');
  const kept: AtifStep[] = [];
  for await (const { purpose, answer } of readCalls(path.join(root, file)))
    if (purpose === 'turn' && answer !== null) kept.push(answer);
  const idsOf = ({ tool_calls: made }: AtifStep): readonly string[] =>
    (made ?? []).map((call) => call.tool_call_id);
  const own = steps.filter(({ source }) => source === 'agent');
  assert.deepEqual(kept.map(idsOf), own.map(idsOf));
  for (const { metrics } of kept) {
    const ids = metrics?.completion_token_ids ?? [];
    assert.ok(ids.length > 0 && (metrics?.prompt_token_ids ?? []).length > 0);
    assert.equal(metrics?.logprobs?.length, ids.length);
  }
  const idsIn = (all: readonly AtifStep[]) =>
    all.map(({ metrics }) => [
      metrics?.prompt_token_ids,
      metrics?.completion_token_ids,
      metrics?.logprobs,
    ]);
  assert.deepEqual(idsIn(own), idsIn(kept), 'they are in the trajectory too');
}
