/** Terminus-2 as users have it: a real engine process, real sandboxes, whole trials. */
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import type { AtifTrajectory } from '../../src/wire/atif/atif.ts';
import type { TrialResult } from '../../src/wire/harbor/trial-result.ts';
import { callSteps } from '../agents/terminus-2/recorded-calls.ts';
import type { FolderFiles } from '../fakes/task-folder.ts';
import { validateWithPeers } from '../support/atif-peers.ts';
import { readEngineLog, startEngineProcess } from '../support/engine-process.ts';
import { realProviders, type OpenProvider } from '../support/real-providers.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { answerTask, environmentTable, runTrial, type TrialBench } from '../trial/trial-bench.ts';

const [local] = realProviders();
const instruction = 'Please write the word yes into /app/answer.\n';
const task: FolderFiles = { ...answerTask, 'instruction.md': instruction };

/** Of requests that were answered; others were refused or cut off. */
const answers = new Set(['stop', 'length']);

interface Scene {
  readonly policy: string;
  readonly engineFlags?: readonly string[];
  readonly files?: FolderFiles;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly agent?: Readonly<Record<string, unknown>>;
}

interface Ended {
  readonly result: TrialResult;
  /** By path in the trial's folder. */
  readonly documents: Readonly<Record<string, AtifTrajectory>>;
  readonly log: Awaited<ReturnType<typeof readEngineLog>>;
  /** All files of the trial, one after the other. */
  readonly written: string;
}

describe(
  'terminus-2 against a real engine',
  { skip: local?.skip ?? false, timeout: 240_000 },
  () => {
    let root = '';
    let open: OpenProvider | null = null;
    /** Trajectories of all scenes, copied to `root` under their numbers. */
    let kept = 0;
    before(async () => {
      root = await mkdtemp(path.join(os.tmpdir(), 'slipway-terminus-2-'));
      open = (await local?.open()) ?? null;
      await open?.provider.preflight(never);
    });
    after(async () => {
      await open?.close();
      await rm(root, { recursive: true, force: true });
    });

    async function play(scene: Scene): Promise<Ended> {
      const log = path.join(root, `${scene.policy}-${Math.random()}.ndjson`);
      await using engine = await startEngineProcess([
        ...['--policy', path.join(repositoryDir, `tests/support/policies/${scene.policy}.ts`)],
        ...['--non-canonical', '0.5', '--log', log, ...(scene.engineFlags ?? [])],
      ]);
      let documents: Ended['documents'] = {};
      let written = '';
      const result = await runTrial(
        {
          provider: open!.provider,
          files: scene.files ?? task,
          config: {
            agent: {
              name: 'terminus-2',
              model_name: 'openai/mock',
              kwargs: {
                api_base: engine.apiBase,
                collect_rollout_details: true,
                retry_min_wait_sec: 0,
                retry_max_wait_sec: 0,
                ...scene.kwargs,
              },
              ...scene.agent,
            },
          },
        },
        ({ trial }: TrialBench) => {
          const files = readdirSync(trial.dir, { recursive: true, withFileTypes: true })
            .filter((entry) => entry.isFile())
            .map((entry) => path.join(entry.parentPath, entry.name));
          const trajectories = files.filter((file) => /trajectory[^/]*\.json$/.test(file));
          for (const file of trajectories) copyFileSync(file, path.join(root, `${kept++}.json`));
          documents = Object.fromEntries(
            trajectories.map((file) => [
              path.relative(trial.dir, file),
              JSON.parse(readFileSync(file, 'utf8')) as AtifTrajectory,
            ]),
          );
          written = files.map((file) => readFileSync(file, 'utf8')).join('\n');
        },
      );
      return { result, documents, log: await readEngineLog(log), written };
    }

    /** Every answered line of the log is one step, number for number. */
    function assertExact({ documents, log }: Ended): void {
      const answered = log.filter(
        ({ fault, finish_reason: reason }) => fault === null && answers.has(reason ?? ''),
      );
      const steps = callSteps(documents);
      assert.equal(steps.length, answered.length);
      const byRequest = new Map(
        steps.map(({ metrics }) => [metrics?.extra?.['request_id'], metrics]),
      );
      for (const line of answered) {
        const metrics = byRequest.get(line.request_id);
        assert.deepEqual(metrics?.prompt_token_ids, line.prompt_ids);
        assert.deepEqual(metrics.completion_token_ids, line.output_ids);
        assert.deepEqual(metrics.logprobs, line.logprobs);
      }
    }

    describe('in a trial', { concurrency: 4 }, () => {
      it('solves a task; every id of its trajectory is the engine’s own', async () => {
        const ended = await play({
          policy: 'answer-policy',
          engineFlags: ['--non-canonical', '1'],
        });
        const { result, documents, log } = ended;
        assert.equal(result.exception_info, null);
        assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
        assert.deepEqual(result.agent_info, {
          name: 'terminus-2',
          version: '2.0.0',
          model_info: { name: 'mock', provider: 'openai' },
        });
        assertExact(ended);
        assert.ok(log.every(({ canonical }) => !canonical));
        const main = documents['agent/trajectory.json'];
        assert.equal(result.agent_result?.n_input_tokens, main?.final_metrics?.total_prompt_tokens);
        assert.deepEqual(result.agent_result?.rollout_details, [
          {
            prompt_token_ids: log.map((line) => line.prompt_ids),
            completion_token_ids: log.map((line) => line.output_ids),
            logprobs: log.map((line) => line.logprobs),
          },
        ]);
      });

      it('sums up a conversation that grows too long; side calls are exact too', async () => {
        const ended = await play({
          policy: 'long-policy',
          kwargs: {
            model_info: { max_input_tokens: 12_000 },
            trajectory_config: { linear_history: true },
          },
        });
        assert.deepEqual(ended.result.verifier_result, { rewards: { reward: 1 } });
        assert.equal(ended.result.agent_result?.metadata?.['summarization_count'], 1);
        assert.deepEqual(Object.keys(ended.documents).sort(), [
          'agent/trajectory.cont-1.json',
          'agent/trajectory.json',
          'agent/trajectory.summarization-1-answers.json',
          'agent/trajectory.summarization-1-questions.json',
          'agent/trajectory.summarization-1-summary.json',
        ]);
        assertExact(ended);
      });

      it('goes on when the engine refuses the conversation for its length', async () => {
        const ended = await play({ policy: 'long-policy', engineFlags: ['--context', '5000'] });
        assert.equal(ended.result.exception_info, null);
        assert.deepEqual(ended.result.verifier_result, { rewards: { reward: 1 } });
        assertExact(ended);
      });

      it('begins each step of a task anew, in a terminal of its own', async () => {
        const count =
          '#!/bin/bash\nif [ "$(cat /app/answer)" = yes ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt; rm -f /app/answer\n';
        const ended = await play({
          policy: 'answer-policy',
          files: {
            'task.toml': `[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n${environmentTable}`,
            'environment/.gitkeep': '',
            'tests/test.sh': count,
            'steps/one/instruction.md': instruction,
            'steps/two/instruction.md': instruction,
          },
        });
        assert.deepEqual(ended.result.verifier_result, { rewards: { reward: 1 } });
        assert.deepEqual(Object.keys(ended.documents).sort(), [
          'steps/one/agent/trajectory.json',
          'steps/two/agent/trajectory.json',
        ]);
        assertExact(ended);
        const episodes = ended.result.step_results?.map(
          ({ agent_result: result }) => result?.metadata?.['n_episodes'],
        );
        assert.deepEqual(episodes, [5, 5]);
      });

      it('tries again what failed in passing', async () => {
        const faults = JSON.stringify([
          { match: { nth: 1 }, fault: 'status-500' },
          { match: { nth: 3 }, fault: 'truncate-body' },
          { match: { nth: 5 }, fault: 'overload', retryAfterSeconds: 0 },
        ]);
        const ended = await play({ policy: 'answer-policy', engineFlags: ['--faults', faults] });
        assert.deepEqual(ended.result.verifier_result, { rewards: { reward: 1 } });
        assert.equal(ended.log.filter(({ fault }) => fault !== null).length, 3);
        assertExact(ended);
      });

      it('ends at its deadline while the engine says nothing, with what it knows on record', async () => {
        const faults = JSON.stringify([{ match: { nth: 3 }, fault: 'stall' }]);
        const ended = await play({
          policy: 'answer-policy',
          engineFlags: ['--faults', faults],
          agent: { override_timeout_sec: 12 },
        });
        assert.equal(ended.result.exception_info?.exception_type, 'AgentTimeoutError');
        // The answer was written in the second turn: a timeout is verified.
        assert.deepEqual(ended.result.verifier_result, { rewards: { reward: 1 } });
        assert.equal(callSteps(ended.documents).length, 2);
        assert.equal(ended.result.agent_result?.metadata?.['n_episodes'], 3);
        assertExact(ended);
      });

      it('keeps the key of the model out of the sandbox and out of every file', async () => {
        const key = 'sk-a-key-of-the-model-0123456789';
        process.env['TERMINUS_2_TEST_KEY'] = key;
        const ended = await play({
          policy: 'key-policy',
          engineFlags: ['--api-key-env', 'TERMINUS_2_TEST_KEY'],
          agent: { env: { OPENAI_API_KEY: key, VISIBLE: 'to-the-shell' } },
        });
        delete process.env['TERMINUS_2_TEST_KEY'];
        assert.equal(ended.result.exception_info, null);
        assert.match(ended.written, /VISIBLE=to-the-shell/);
        assert.match(ended.written, /keys: 0\b/);
        assert.ok(!ended.written.includes(key));
      });
    });

    it('leaves documents that other validators accept as well', async () => {
      assert.ok(kept > 10);
      const files = Array.from({ length: kept }, (_, index) => path.join(root, `${index}.json`));
      await validateWithPeers(files);
    });
  },
);
