/** What tests of trials share: a task of a few files, a folder for trials, and a trial of any agent on any provider. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openEngine } from '../../src/engines/registry.ts';
import type { Agent, AgentOptions, AgentResolver, AgentRun } from '../../src/agents/agent.ts';
import { systemClock } from '../../src/core/clock.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { EnvironmentProvider } from '../../src/environments/environment.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import type { Sequence } from '../../src/trial/sequence.ts';
import type { TrialEvent } from '../../src/trial/trial-events.ts';
import type { Skill, TrialParts } from '../../src/trial/trial-options.ts';
import { createTrial, type Trial } from '../../src/trial/trial.ts';
import { trialConfigSchema } from '../../src/wire/harbor/trial-config.ts';
import type { TrialResult } from '../../src/wire/harbor/trial-result.ts';
import { resolveAgent } from '../../src/agents/registry.ts';
import { taskFolder, type FolderFiles } from '../fakes/task-folder.ts';

export const image = 'debian:bookworm-slim';

export const environmentTable = `[environment]\ndocker_image = "${image}"\n`;

/** A task on a prebuilt image whose verifier says 1 when `/app/answer` holds "yes". */
export const answerTask: FolderFiles = {
  'task.toml': environmentTable,
  'instruction.md': 'Write yes to /app/answer.\n',
  'environment/.gitkeep': '',
  'tests/test.sh':
    '#!/bin/bash\nif [ "$(cat /app/answer 2>/dev/null)" = yes ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
  'solution/solve.sh': '#!/bin/bash\nmkdir -p /app\necho yes > /app/answer\n',
};

export interface BenchOptions {
  readonly provider: EnvironmentProvider;
  readonly files?: FolderFiles;
  /** Fields of the trial's configuration beside task, name and folder. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Replaces the registry's agents. */
  readonly agent?: AgentBehaviour;
  readonly sequence?: Sequence;
  readonly parts?: Partial<TrialParts>;
  readonly skills?: readonly Skill[];
  readonly trialName?: string;
}

export type AgentBehaviour = Partial<
  Pick<
    Agent,
    'preflight' | 'setup' | 'capabilities' | 'version' | 'hostFiles' | 'hostOnlyVariables'
  >
> & {
  run?(run: AgentRun, signal: AbortSignal, options: AgentOptions): Promise<void>;
};

export interface TrialBench extends AsyncDisposable {
  readonly trial: Trial;
  readonly taskDir: string;
  readonly events: TrialEvent[];
  /** Text of a file of the trial's folder. */
  readonly file: (name: string) => string;
}

/** Runs one trial to its end and removes everything but the answer. */
export async function runTrial(
  options: BenchOptions,
  look: (bench: TrialBench, result: TrialResult) => void | Promise<void> = () => undefined,
): Promise<TrialResult> {
  await using bench = await trialBench(options);
  const result = await bench.trial.run(never);
  await look(bench, result);
  return result;
}

export async function trialBench(options: BenchOptions): Promise<TrialBench> {
  const task = await taskFolder(options.files ?? answerTask);
  const trialsDir = mkdtempSync(path.join(os.tmpdir(), 'slipway-trials-'));
  const events: TrialEvent[] = [];
  const config = trialConfigSchema.parse({
    task: { path: task.dir },
    trial_name: options.trialName ?? 'a-task__Ab3dEf7',
    trials_dir: trialsDir,
    environment: { type: options.provider.kind },
    ...options.config,
  });
  const trial = createTrial(
    {
      config,
      taskName: 'a-task',
      taskId: { path: task.dir },
      source: null,
      load: async (signal) => ({
        task: await loadTask({
          dir: task.dir,
          signal,
          isVerificationEnabled: !config.verifier.disable,
        }),
        checksum: 'checksum',
        skills: options.skills ?? [],
        taskLock: {
          name: 'a-task',
          version: null,
          type: 'local',
          digest: 'sha256:0',
          source: null,
          path: task.dir,
          git_url: null,
          git_commit_id: null,
        },
      }),
    },
    {
      provider: options.provider,
      openEngine,
      resolveAgent: options.agent === undefined ? resolveAgent : resolverOf(options.agent),
      clock: systemClock,
      logger: silentLogger,
      hostVariables: {},
      storeId: 'tests',
      runId: 'tests-run',
      observe: (event) => events.push(event),
      ...options.parts,
    },
    options.sequence,
  );
  return {
    trial,
    taskDir: task.dir,
    events,
    file: (name) => readFileSync(path.join(trial.dir, name), 'utf8'),
    [Symbol.asyncDispose]: async () => {
      await rm(trialsDir, { recursive: true, force: true });
      await task[Symbol.asyncDispose]();
    },
  };
}

function resolverOf(behaviour: AgentBehaviour): AgentResolver {
  return async () => (options) => ({
    name: 'scripted',
    version: behaviour.version ?? '1',
    capabilities: behaviour.capabilities ?? {
      resume: false,
      loadTrajectory: false,
      windows: false,
    },
    hostFiles: behaviour.hostFiles ?? [],
    hostOnlyVariables: behaviour.hostOnlyVariables ?? [],
    ...(behaviour.preflight !== undefined && { preflight: behaviour.preflight }),
    setup: behaviour.setup ?? (() => Promise.resolve()),
    run: async (run, signal) => await behaviour.run?.(run, signal, options),
  });
}
