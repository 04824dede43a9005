/** The backend `native` with each agent of ours, in each environment of this machine; of the tasks some give other rewards than 1. */
import path from 'node:path';
import { readExpectations } from '../../../scripts/quickstart/expectations.js';
import { startEngineProcess } from '../../support/engine-process.ts';
import { realProviders } from '../../support/real-providers.ts';
import { bundledTasksDir, repositoryDir } from '../../support/slipway-cli.ts';
import { taskFolder, type FolderFiles, type TaskFolder } from '../../fakes/task-folder.ts';
import { answerTask } from '../../trial/trial-bench.ts';
import type { BackendSection, SectionReport } from './backend-section.ts';
import { keptFile, runPlanned, serve, type PlannedRollout, type Served } from './served.ts';

const policy = path.join(repositoryDir, 'tests/support/policies/answer-policy.ts');

/** Of the bundled tasks, those that need nothing special: single steps and several, with rewards from 0 to 1. */
const oracleTasks = [
  ...['file-answer', 'partial-reward', 'planted-reward', 'prebuilt-image', 'reward-channels'],
  ...['multi-step-ledger', 'step-gate', 'separate-verifier', 'working-folder', 'no-network'],
];

/** The reward of its oracle, as it says itself. */
function promisedBy(task: string): number {
  const found = readExpectations().find((one) => one.task === task)?.oracle['reward'];
  if (found === undefined) throw new Error(`${task} promises nothing`);
  return found;
}

/** Its verifier ends without a reward. */
const rewardless: FolderFiles = { ...answerTask, 'tests/test.sh': '#!/bin/bash\ntrue\n' };
const failing = (task: TaskFolder): PlannedRollout => ({
  rollout_id: 'without-reward',
  metadata: { harbor_task: task.dir },
  promised: { cause: 'REWARD_MISSING' },
});

const tables = (agent: string, environment: string): string =>
  [
    ...['[backend]', 'kind = "native"', '[backend.native]'],
    ...[`agent = "${agent}"`, `environment = "${environment}"`, ''],
  ].join('\n');

async function runOracle(environment: string, count: number): Promise<SectionReport> {
  await using spoilt = await taskFolder(rewardless);
  await using served = await serve({ config: tables('oracle', environment), request: {} });
  const planned = Array.from({ length: count }, (_, index): PlannedRollout => {
    const task = oracleTasks[index % oracleTasks.length]!;
    return {
      rollout_id: `${task}-${index}`,
      metadata: { harbor_task: path.join(bundledTasksDir, task) },
      promised: promisedBy(task),
    };
  });
  return await runPlanned(served, [...planned, failing(spoilt)]);
}

async function runTerminus(environment: string, count: number): Promise<SectionReport> {
  await using engine = await startEngineProcess(['--policy', policy]);
  await using spoilt = await taskFolder(rewardless);
  await using right = await taskFolder(wordTask('yes'));
  // The agent writes what it is told, and the verifier wants something else.
  await using wrong = await taskFolder(wordTask('no'));
  await using served = await serve({
    config: tables('terminus-2', environment),
    request: { chat_completions_url: engine.apiBase, llm_api_key: 'key-of-the-model' },
  });
  const planned = Array.from({ length: count }, (_, index): PlannedRollout => {
    const isRight = index % 3 !== 2;
    const id = `word-${index}`;
    return {
      rollout_id: id,
      metadata: { harbor_task: (isRight ? right : wrong).dir },
      promised: isRight ? 1 : 0,
      judge: () => judgeTrajectory(served, id),
    };
  });
  return await runPlanned(served, [...planned, failing(spoilt)]);
}

const wordTask = (word: string): FolderFiles => ({
  ...answerTask,
  'instruction.md': `Please write the word ${word} to /app/answer.\n`,
});

/** The agent's own document is in the archive, under the rollout's id and with its reward. */
async function judgeTrajectory({ server }: Served, id: string): Promise<readonly string[]> {
  const text = await keptFile(server, id, 'trajectory.json');
  const document = JSON.parse(text) as {
    readonly session_id: string;
    readonly agent: { readonly name: string };
    readonly steps: readonly unknown[];
  };
  const isOwn = document.session_id === id && document.agent.name === 'terminus-2';
  const problems =
    isOwn && document.steps.length > 3 ? [] : [`its trajectory is ${text.slice(0, 200)}`];
  return text.includes('key-of-the-model') ? [...problems, 'its trajectory has the key'] : problems;
}

export const nativeSections: readonly BackendSection[] = realProviders().flatMap(
  ({ kind, skip }) => {
    const section = (
      works: string,
      run: (environment: string, count: number) => Promise<SectionReport>,
    ): BackendSection => ({
      ...{ backend: 'native', environment: kind, works },
      run: (count) => {
        if (skip !== null) throw new Error(`cannot be shown here: ${skip}`);
        return run(kind, count);
      },
    });
    return [section('oracle', runOracle), section('terminus-2', runTerminus)];
  },
);
