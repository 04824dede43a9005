/**
 * The conformance turn of an agent whose program is brought into the sandbox: it has to solve a small task by a command of its own shell (or by an edit, where it
 * has none), behind a gateway, on a model that plays a script, and to leave a trajectory of that.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describeAgents, type AgentDescription } from '../agents/registry.ts';
import { RolloutError } from '../core/errors.ts';
import { compileJobConfig } from '../config/job-request.ts';
import { validateTrajectory } from '../trajectory/validate.ts';
import type { AtifStep, AtifTrajectory } from '../wire/atif/atif.ts';
import type { AppPorts } from './ports.ts';
import { runJob } from './run-job.ts';
import { serveEngine } from './serve-engine.ts';

export { describeAgents, type AgentDescription };

export interface AgentCheckOptions {
  readonly name: string;
  /** `local`, `docker`. */
  readonly environment: string;
  /** Of the sandbox. */
  readonly image: string;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface AgentCheck {
  readonly agent: string;
  /** What is wrong, a line each; empty = it passed. */
  readonly problems: readonly string[];
  /** Calls of the model that its log tells. */
  readonly modelCalls: number;
  readonly durationMs: number;
}

const files = { answer: 'yes\n' };
const script = [{ shell: 'echo yes > /app/answer', files }, { say: 'It is done.' }];

const taskFiles = (image: string): Readonly<Record<string, string>> => ({
  'task.toml': `[environment]\ndocker_image = ${JSON.stringify(image)}\nworkdir = "/app"\nnetwork_mode = "no-network"\n`,
  'instruction.md': `Follow the script.\n\n\`\`\`script\n${JSON.stringify(script)}\n\`\`\`\n`,
  'environment/.gitkeep': '',
  'tests/test.sh':
    '#!/bin/sh\nif [ "$(cat /app/answer)" = yes ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
});

/** AGENT_UNKNOWN; CONFIG_INVALID for an agent without a program of its own; else what a run rejects with. */
export async function checkAgent(options: AgentCheckOptions, ports: AppPorts): Promise<AgentCheck> {
  const { name, image, environment, note, signal } = options;
  await ports.resolveAgent(name);
  const described = (await describeAgents()).find((one) => one.name === name);
  if (described?.version == null) throw noProgram(name);
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-agent-'));
  try {
    for (const [file, text] of Object.entries(taskFiles(image))) {
      await mkdir(path.dirname(path.join(root, 'task', file)), { recursive: true });
      await writeFile(path.join(root, 'task', file), text);
    }
    await using engine = await serveEngine({ policy: 'tool-script', port: '0' }, {});
    const config = compileJobConfig({
      ...{ job_name: 'check', jobs_dir: root, tasks: [{ path: path.join(root, 'task') }] },
      environment: { type: environment },
      agents: [
        {
          ...{ name, model_name: 'openai/mock' },
          kwargs: { api_base: `${engine.url}/v1`, engine_kind: 'vllm' },
        },
      ],
    });
    const outcome = await runJob(
      {
        ...{ config, sources: null, allowUnsandboxed: false, note, signal },
        observe: () => undefined,
        confirmVariables: () => Promise.resolve(true),
      },
      ports,
    );
    signal.throwIfAborted();
    const trial = outcome?.report.trials[0];
    if (outcome === null || trial === undefined) throw new TypeError('one trial was asked for');
    const file = path.join(outcome.dir, trial.trialName, 'agent', 'trajectory.json');
    const trajectory = await readFile(file, 'utf8').then(
      (text) => JSON.parse(text) as AtifTrajectory,
      () => null,
    );
    const calls = trajectory?.steps.filter(({ source }) => source === 'agent') ?? [];
    return {
      agent: name,
      problems: [
        ...(trial.failure === null ? [] : [`${trial.failure.code}: ${trial.failure.message}`]),
        ...(trial.rewards?.['reward'] === 1 ? [] : ['the task was not solved']),
        ...(trajectory === null ? ['no trajectory was left'] : validateTrajectory(trajectory)),
        ...(calls.some(isWork) ? [] : ['no call of a tool and no edit is on record']),
        ...(calls.every(({ metrics }) => metrics?.completion_token_ids != null)
          ? []
          : ['a call of the model is on record without its token ids']),
      ],
      modelCalls: calls.length,
      durationMs: outcome.durationMs,
    };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

function isWork({ tool_calls: made, message }: AtifStep): boolean {
  return (made ?? []).length > 0 || (typeof message === 'string' && message.includes('\nyes\n'));
}

function noProgram(name: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', `the agent ${name} has no program to be checked`, {
    phase: 'config',
    field: 'NAME',
    remedy: 'Name an agent for which `slipway agents ls` shows a version.',
  });
}
