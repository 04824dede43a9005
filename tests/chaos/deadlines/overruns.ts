/**
 * Rollouts whose parts run longer than their limit, on real sandboxes or on those in memory: what overran is ended and typed, what it had written is
 * there, and no verifier shares its time with an agent.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { AgentFactory, AgentRun } from '../../../src/agents/agent.ts';
import type { ExecutionResult } from '../../../src/backends/execution-backend.ts';
import { LocalBackend } from '../../../src/backends/local/local-backend.ts';
import { NativeBackend } from '../../../src/backends/native/native-backend.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { EnvironmentProvider } from '../../../src/environments/environment.ts';
import type { TrialEvent } from '../../../src/trial/trial-events.ts';
import { HeardHooks, portsOn, requestFor } from '../../backends/native/native-bench.ts';
import { taskFolder, type FolderFiles } from '../../fakes/task-folder.ts';
import { answerTask } from '../../trial/trial-bench.ts';
import { systemPython } from '../../backends/local/local-bench.ts';

export type OverrunKind =
  | 'agent-sleeps'
  | 'agent-spins'
  | 'agent-leaves-others'
  | 'verifier-sleeps'
  | 'verifier-ignores'
  | 'setup-sleeps'
  | 'workflow-loops'
  | 'workflow-swallows'
  | 'grader-loops';

export const nativeKinds: readonly OverrunKind[] = [
  ...(['agent-sleeps', 'agent-spins', 'agent-leaves-others'] as const),
  ...(['verifier-sleeps', 'verifier-ignores', 'setup-sleeps'] as const),
];
export const localKinds: readonly OverrunKind[] = [
  'workflow-loops',
  'workflow-swallows',
  'grader-loops',
];

export interface Overrun {
  readonly kind: OverrunKind;
  readonly limitMs: number;
  /** How much longer than its limit the part was there, all that ending it took included. */
  readonly overMs: number;
  readonly result: ExecutionResult;
  readonly stages: readonly string[];
}

const causes: Readonly<Record<OverrunKind, string>> = {
  'agent-sleeps': 'AGENT_TIMEOUT',
  'agent-spins': 'AGENT_TIMEOUT',
  'agent-leaves-others': 'AGENT_TIMEOUT',
  'verifier-sleeps': 'VERIFIER_TIMEOUT',
  'verifier-ignores': 'VERIFIER_TIMEOUT',
  'setup-sleeps': 'AGENT_SETUP_TIMEOUT',
  'workflow-loops': 'WORKFLOW_TIMEOUT',
  'workflow-swallows': 'WORKFLOW_TIMEOUT',
  'grader-loops': 'GRADER_TIMEOUT',
};

/** One line per thing that is wrong, times apart. */
export function overrunProblems({ kind, result, stages }: Overrun): readonly string[] {
  const { cause, verdict } = result.outcome;
  const rewards = verdict?.rewards ?? null;
  const isAgents = kind.startsWith('agent');
  const stopped = stages.indexOf('stopping agent');
  return [
    ...(cause === causes[kind] ? [] : [`${kind} ended with ${String(cause)}`]),
    ...(result.status === 'failure' ? [] : [`${kind} is a success`]),
    ...(result.sample?.reward == null ? [] : [`${kind} has a reward`]),
    ...(isAgents && rewards?.['reward'] !== 1 ? [`${kind} lost its verdict`] : []),
    ...(rewards?.['overlap'] !== undefined && rewards['overlap'] !== 0
      ? [`${kind}: the agent was alive beside its verifier`]
      : []),
    ...(isAgents && rewards !== null && stopped > stages.indexOf('running verifier')
      ? [`${kind}: verified before the agent was stopped`]
      : []),
    ...(kind.startsWith('agent') || kind.startsWith('verifier')
      ? result.trajectory === null
        ? [`${kind} lost its trajectory`]
        : []
      : []),
  ];
}

/** The beat of whatever the agent left running must have stopped. */
const verdict = [
  '#!/bin/bash',
  'before=$(cat /app/beat 2>/dev/null); sleep 0.2; after=$(cat /app/beat 2>/dev/null)',
  'overlap=0; [ "$before" = "$after" ] || overlap=1',
  'reward=0; [ "$(cat /app/answer)" = yes ] && reward=1',
  'echo "{\\"reward\\": $reward, \\"overlap\\": $overlap}" > /logs/verifier/reward.json',
].join('\n');

const tests: Partial<Record<OverrunKind, string>> = {
  'verifier-sleeps': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt; sleep 600\n',
  'verifier-ignores':
    "#!/bin/bash\ntrap '' TERM INT HUP\necho 1 > /logs/verifier/reward.txt; sleep 600; sleep 600\n",
};

const commands: Partial<Record<OverrunKind, string>> = {
  'agent-sleeps': 'sleep 600',
  'agent-spins': 'while :; do :; done',
  'agent-leaves-others':
    '(setsid bash -c \'trap "" TERM; while :; do date +%s%N > /app/beat; sleep 0.02; done\' >/dev/null 2>&1 &) ; sleep 600',
};

const document = {
  schema_version: 'ATIF-v1.7',
  agent: { name: 'scripted', version: '1' },
  steps: [{ step_id: 1, source: 'user', message: 'work' }],
};

/** `instruction` names the kind. */
const agent: AgentFactory = (options) => ({
  name: 'scripted',
  version: '1',
  capabilities: { resume: false, loadTrajectory: false, windows: false },
  hostFiles: ['trajectory.json'],
  hostOnlyVariables: [],
  async setup(environment, signal) {
    if (options.kwargs['setup'] === 'sleeps')
      await environment.exec({ command: 'sleep 600' }, signal);
  },
  async run({ instruction, environment }: AgentRun, signal) {
    await writeFile(path.join(options.logsDir, 'trajectory.json'), JSON.stringify(document));
    await environment.exec({ command: 'mkdir -p /app && echo yes > /app/answer' }, signal);
    const command = commands[instruction.trim() as OverrunKind];
    if (command !== undefined) await environment.exec({ command }, signal);
  },
});

export interface OverrunsOptions {
  readonly provider: EnvironmentProvider;
  readonly kinds: readonly OverrunKind[];
  readonly count: number;
  readonly concurrency: number;
  readonly limitMs: number;
  readonly onOverrun?: (overrun: Overrun) => void;
}

export async function runOverruns(options: OverrunsOptions): Promise<readonly Overrun[]> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-overruns-'));
  const { kinds, count } = options;
  const queue = Array.from({ length: count }, (_, at) => at).values();
  const overruns: Overrun[] = [];
  const work = async (): Promise<void> => {
    for (const at of queue) {
      const kind = kinds[at % kinds.length];
      if (kind === undefined) continue;
      const run = localKinds.includes(kind) ? runLocal : runNative;
      const overrun = await run(kind, { ...options, id: `${kind}-${at}`, root });
      overruns.push(overrun);
      options.onOverrun?.(overrun);
    }
  };
  try {
    await Promise.all(Array.from({ length: options.concurrency }, work));
    return overruns;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

interface OneRun extends OverrunsOptions {
  readonly id: string;
  readonly root: string;
}

async function runNative(kind: OverrunKind, { provider, limitMs, id, root }: OneRun) {
  const events: TrialEvent[] = [];
  const ports = portsOn(provider, { resolveAgent: () => Promise.resolve(agent) });
  const files: FolderFiles = {
    ...answerTask,
    'instruction.md': `${kind}\n`,
    'tests/test.sh': tests[kind] ?? verdict,
  };
  await using task = await taskFolder(files);
  const backend = new NativeBackend(
    {
      ...{ agent: 'oracle', environment: provider.kind },
      ...(kind === 'setup-sleeps' && {
        ...{ agent_setup_timeout_sec: limitMs / 1000, agent_options: { setup: 'sleeps' } },
      }),
    },
    {
      ports: {
        ...ports,
        openTrials: async (...given) => {
          const trials = await ports.openTrials(...given);
          return {
            hasHostEndpoint: trials.hasHostEndpoint,
            [Symbol.asyncDispose]: () => trials[Symbol.asyncDispose](),
            createTrial: (request, { observe, ...hooks }) =>
              trials.createTrial(request, {
                ...hooks,
                observe: (event) => {
                  events.push(event);
                  observe(event);
                },
              }),
          };
        },
      },
      ...{ dataDir: path.join(root, id), clock: systemClock, logger: silentLogger },
      ...{ baseDir: root, limits: { maxConcurrent: 1, maxQueueDepth: 0 } },
      ...systemPython,
    },
  );
  await backend.start(never);
  try {
    const isAgents = kind.startsWith('agent');
    const request = requestFor(task.dir, {
      id,
      agentTimeoutMs: isAgents ? limitMs : null,
      graderTimeoutMs: kind.startsWith('verifier') ? limitMs : null,
    });
    const result = await backend.execute(request, new HeardHooks()).result;
    const part = { agent: 'running agent', verif: 'running verifier', setup: 'setting up agent' };
    const name = part[kind.slice(0, 5) as keyof typeof part];
    const ended = events.find((event) => event.type === 'stage:ended' && event.stage === name);
    const ms = ended?.type === 'stage:ended' ? ended.durationMs : Infinity;
    const stages = events.flatMap((event) => (event.type === 'stage:started' ? [event.stage] : []));
    return { kind, limitMs, overMs: ms - limitMs, result, stages };
  } finally {
    await backend.close();
  }
}

const userCode = path.resolve(import.meta.dirname, '../../backends/local/user-code.ts');
const acts: Partial<Record<OverrunKind, Readonly<Record<string, string>>>> = {
  'workflow-loops': { act: 'loops' },
  'workflow-swallows': { act: 'swallows' },
  'grader-loops': { act: 'list', grade: 'loops' },
};

async function runLocal(kind: OverrunKind, { limitMs, id, root }: OneRun): Promise<Overrun> {
  const backend = new LocalBackend(
    { workflow: `${userCode}:Workflow`, grader: `${userCode}:TestGrader` },
    {
      ...{ dataDir: path.join(root, id), baseDir: root, clock: systemClock, logger: silentLogger },
      limits: { maxConcurrent: 1, maxQueueDepth: 0 },
      ...systemPython,
    },
  );
  await backend.start(never);
  try {
    const isGraders = kind === 'grader-loops';
    const request = requestFor(null, {
      id,
      ...{ metadata: acts[kind] ?? {}, route: null },
      agentTimeoutMs: isGraders ? null : limitMs,
      graderTimeoutMs: isGraders ? limitMs : null,
    });
    const since = performance.now();
    const result = await backend.execute(request, new HeardHooks()).result;
    return { kind, limitMs, overMs: performance.now() - since - limitMs, result, stages: [] };
  } finally {
    await backend.close();
  }
}
