/** An agent that does what the first word of its instruction says, for faults of agents and of their models. */
import type { Agent, AgentFactory, AgentOptions, AgentRun } from '../../../src/agents/agent.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { collect } from '../../../src/engines/model-call.ts';

type Act = (run: AgentRun, signal: AbortSignal, options: AgentOptions) => Promise<void>;

/** Of a call of the model. */
const stallMs = 3_000;

const sh = async ({ environment }: AgentRun, command: string, signal: AbortSignal) => {
  await environment.exec({ command }, signal);
};
const solve: Act = (run, signal) => sh(run, 'mkdir -p /app && echo yes > /app/answer', signal);
const sleep = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
const exit = (): never => {
  throw new RolloutError('AGENT_EXIT_NONZERO', 'the agent exited with 3', { phase: 'agent' });
};

const callModel: Act = async (run, signal, options) => {
  const { api_base: baseUrl, llm_kwargs: llm } = options.kwargs;
  const engine = await options.openEngine({
    kind: 'chat',
    baseUrl: String(baseUrl),
    apiKey: (llm as { readonly api_key: string }).api_key,
    stallMs,
  });
  try {
    const messages = [{ role: 'user' as const, content: run.instruction }];
    const call = await engine.generate(
      {
        ...{ requestId: 'one', model: 'm', input: { kind: 'messages', messages } },
        ...{ sampling: {}, isStreaming: true, wantsTokens: false },
      },
      signal,
    );
    await collect(call);
  } finally {
    await engine.close();
  }
  await solve(run, signal, options);
};

/** The rest of the instruction. */
const command: Act = async ({ instruction, environment }, signal) => {
  const text = instruction.trim().slice('command'.length);
  const { exitCode } = await environment.exec({ command: text }, signal);
  if (exitCode === 0) return;
  const message = `the command exited with ${exitCode}`;
  throw new RolloutError('AGENT_EXIT_NONZERO', message, { phase: 'agent' });
};

const acts: Readonly<Record<string, Act>> = {
  command,
  solve,
  idle: () => Promise.resolve(),
  sleep: async (_run, signal) => await sleep(signal),
  'solve-then-sleep': async (run, signal, options) => {
    await solve(run, signal, options);
    await sleep(signal);
  },
  exit: () => Promise.resolve().then(exit),
  'solve-then-exit': async (run, signal, options) => {
    await solve(run, signal, options);
    exit();
  },
  break: () => Promise.reject(new Error('a library of the agent broke')),
  plant: (run, signal) =>
    sh(run, 'mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt', signal),
  'work-long': async (run, signal) => await sh(run, 'echo before; true # the long command', signal),
  'call-model': callModel,
};

/** `modelName` says what the setup does. */
export const scriptedAgent: AgentFactory = (options): Agent => ({
  name: 'scripted',
  version: '1',
  capabilities: { resume: false, loadTrajectory: false, windows: false },
  hostFiles: [],
  hostOnlyVariables: [],
  setup() {
    if (options.modelName !== 'openai/setup-breaks') return Promise.resolve();
    throw new RolloutError('AGENT_SETUP_FAILED', 'no package', { phase: 'agent-setup' });
  },
  async run(run, signal) {
    const [word = ''] = run.instruction.trim().split(/\s/);
    const act = acts[word];
    if (act === undefined) throw new Error(`no act ${word}`);
    await act(run, signal, options);
  },
});
