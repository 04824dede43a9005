/** The backend `local` with a workflow and a grader written for osmosis-ai, unchanged, on a mock engine. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { harborPython } from '../../../scripts/setup/harbor-peer.js';
import { osmosisPeerDir } from '../../../scripts/setup/osmosis-peer.js';
import {
  RolloutController,
  type ControllerRequest,
  type ControllerResult,
} from '../../../src/callbacks/rollout-controller.ts';
import { startEngineProcess, type EngineProcess } from '../../support/engine-process.ts';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import { until } from '../../support/until.ts';
import type { BackendSection } from './backend-section.ts';
import { keptFile, runPlanned, type PlannedRollout } from './served.ts';

export const osmosisCode = path.resolve(import.meta.dirname, '../../integration/osmosis-workflow');
export const modelKey = 'key-of-the-model';

export interface PythonBench extends AsyncDisposable {
  readonly server: ServeProcess;
  readonly stateDir: string;
  rollOut(request: Partial<ControllerRequest>): Promise<ControllerResult>;
  /** A file that the archive keeps of a rollout. */
  kept(id: string, name: string): Promise<string>;
}

/** A server whose workflow is of `multi_turn.py`; `flags` add to its configuration. */
export async function pythonBench(
  workflow: string,
  flags: readonly string[] = [],
): Promise<PythonBench> {
  const stateDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-python-workflow-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(stateDir, { recursive: true, force: true }));
  const [engine, server]: [EngineProcess, ServeProcess] = await Promise.all([
    startEngineProcess(['--policy', 'echo']).then((one) => stack.use(one)),
    startServeProcess(
      [
        ...['--backend', 'local', '--backend-local-workflow', `multi_turn:${workflow}`],
        ...['--backend-local-grader', 'multi_turn:ExactGrader', '--python', harborPython()],
        ...['--python-path', osmosisPeerDir(), '--python-path', osmosisCode, ...flags],
      ],
      { stateDir, variables: { PYTHONDONTWRITEBYTECODE: '1' } },
    ).then((one) => stack.use(one)),
  ]);
  const controller = stack.use(new RolloutController({ serverUrl: server.url }));
  await controller.start();
  const kept = stack.move();
  return {
    server,
    stateDir,
    rollOut: (request) =>
      controller.run({
        initial_messages: [{ role: 'user', content: `task of ${request.rollout_id}` }],
        chat_completions_url: engine.apiBase,
        llm_api_key: modelKey,
        metadata: {},
        ...request,
      }),
    kept: (id, name) => keptFile(server, id, name),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

export const multiTurnFlags: readonly string[] = [
  ...['--backend-local-workflow-config', 'multi_turn:workflow_config'],
  ...['--backend-local-grader-config', '{"name":"exact","reward":0.75}'],
];

/** Of the process that runs a rollout which waits. */
export async function pidOf({ stateDir }: PythonBench, id: string): Promise<number> {
  const file = path.join(stateDir, 'server/trials', id, 'artifacts/pid');
  let pid = '';
  await until(`${id} waits`, async () => {
    pid = await readFile(file, 'utf8').catch(() => '');
    return pid !== '';
  });
  return Number(pid);
}

/** What is wrong with a multi-turn rollout, beside its reward. */
async function judgeMultiTurn(
  bench: PythonBench,
  { id, grader }: ControllerResult,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const expect = (what: string, found: unknown, wanted: unknown): void => {
    if (JSON.stringify(found) !== JSON.stringify(wanted))
      problems.push(`${what} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
  };
  const task = `task of ${id}`;
  const again = `${task} again`;
  const sample = grader?.['sample'] as Readonly<Record<string, unknown>> | null | undefined;
  const messages = sample?.['messages'] as readonly { readonly content: string }[] | undefined;
  const said = messages?.map(({ content }) => content);
  expect('the conversation', said, [task, task, again, again, again, again]);
  expect('the metrics', sample?.['metrics'], { turns: 3 });
  expect('the judgement', sample?.['extra_fields'], { judged: `judge ${again}` });
  expect('the artifact', await bench.kept(id, 'artifacts/turns.txt').catch(String), '3');
  return problems;
}

export const localSection: BackendSection = {
  ...{ backend: 'local', environment: 'processes beside the server' },
  works: 'AgentWorkflow and Grader of osmosis-ai, one process killed',
  async run(count) {
    await using bench = await pythonBench('MultiTurnWorkflow', [
      ...multiTurnFlags,
      ...['--max-concurrent', '4', '--max-queue-depth', `${count + 1}`],
    ]);
    const planned = Array.from({ length: count }, (_, index): PlannedRollout => {
      // Every third label is wrong: a grader that gives everybody the same is found out.
      const isRight = index % 3 !== 2;
      const id = `py-${index}`;
      return {
        rollout_id: id,
        label: isRight ? `task of ${id} again` : 'something else',
        promised: isRight ? 0.75 : 0,
        judge: (result) => judgeMultiTurn(bench, result),
      };
    });
    const killed: PlannedRollout = {
      ...{ rollout_id: 'killed', metadata: { waits: true }, label: 'x' },
      promised: { cause: 'RUNNER_FAILED' },
    };
    const [report] = await Promise.all([
      runPlanned(bench, [killed, ...planned]),
      pidOf(bench, 'killed').then((pid) => process.kill(pid, 'SIGKILL')),
    ]);
    return report;
  },
};
