/** A server whose trials run an agent class on the package `harbor`, and the model of its controller. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { harborPeerDir, harborPython } from '../../../scripts/setup/harbor-peer.js';
import {
  RolloutController,
  type ControllerRequest,
  type ControllerResult,
} from '../../../src/callbacks/rollout-controller.ts';
import { ChatUpstream, type Answer } from '../../fakes/chat-upstream.ts';
import { taskFolder } from '../../fakes/task-folder.ts';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import { answerTask } from '../../trial/trial-bench.ts';

export const harborAgentsDir = import.meta.dirname;
export const modelKey = 'key-of-the-model';

const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'some-model',
  choices: [
    {
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'mkdir -p /app && echo yes > /app/answer' },
    },
  ],
  usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
};

export const answerYes: Answer = (response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(completion));
};

/** Of each class. */
export const bindings = {
  ChatAgent: 'custom-chat-completions',
  InstalledAgent: 'custom-installed-chat-completions',
} as const;

export interface HarborBench extends AsyncDisposable {
  readonly server: ServeProcess;
  readonly upstream: ChatUpstream;
  rollOut(id: string): Promise<ControllerResult>;
  /** What a rollout of the task asks for. */
  readonly request: Omit<ControllerRequest, 'rollout_id'>;
}

export async function openHarborBench(
  className: keyof typeof bindings,
  answer: Answer,
  environment = 'local',
): Promise<HarborBench> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-harbor-agent-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const task = stack.use(await taskFolder(answerTask));
  const upstream = stack.use(await ChatUpstream.start(answer));
  const server = stack.use(
    await startServeProcess(
      [
        ...['--backend', 'native', '--backend-native-agent', `harbor_agents:${className}`],
        ...[
          '--backend-native-binding',
          bindings[className],
          '--backend-native-model',
          'openai/some-model',
        ],
        ...['--backend-native-environment', environment, '--python', harborPython()],
        ...['--max-concurrent', '4', '--max-queue-depth', '1000'],
      ],
      {
        stateDir: root,
        variables: {
          SLIPWAY_PYTHONPATH: [harborPeerDir(), harborAgentsDir].join(path.delimiter),
          PYTHONDONTWRITEBYTECODE: '1',
        },
      },
    ),
  );
  const controller = stack.use(new RolloutController({ serverUrl: server.url }));
  await controller.start();
  const kept = stack.move();
  const request = {
    initial_messages: [],
    chat_completions_url: `${upstream.url}/v1`,
    llm_api_key: modelKey,
    metadata: { harbor_task: task.dir },
  };
  return {
    ...{ server, upstream, request },
    rollOut: (id) => controller.run({ ...request, rollout_id: id }),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** What the callbacks of a rollout said. */
export function reasonOf({ completion: said, grader }: ControllerResult): string {
  return JSON.stringify([said, grader]);
}
