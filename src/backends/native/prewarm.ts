/**
 * Before a server listens: one trial per task that starts the environment and sets the agent up, so that a task which cannot start is known before
 * anybody asks for it, and images and installs are there. What is told of a failure holds no address, no credential and nothing that a program printed.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import type { Logger } from '../../core/logger.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type { NativeOptions } from './native-options.ts';
import type { NativePorts, NativeTrials } from './native-ports.ts';
import { prewarmTrialConfig } from './native-trial-config.ts';
import { labelOf, type PrewarmTask } from './prewarm-tasks.ts';

export interface PrewarmParts {
  readonly options: NativeOptions;
  readonly trials: NativeTrials;
  readonly ports: Pick<NativePorts, 'findTask' | 'loadSkills' | 'labelOf'>;
  readonly trialsDir: string;
  readonly logger: Logger;
}

const atOnce = 4;
const namePrefix = 'native-prewarm-';
const nameForm = /^native-prewarm-[0-9a-f]{32}$/;

/** What earlier starts left for whoever wanted to look at it. What cannot be removed is logged. */
export async function removeEarlierPrewarms(trialsDir: string, logger: Logger): Promise<void> {
  const names = await readdir(trialsDir).catch(() => []);
  for (const folder of names.filter((name) => nameForm.test(name)))
    await rm(path.join(trialsDir, folder), { recursive: true, force: true }).catch(
      (error: unknown) => {
        const fields = { folder, error: messageOf(error) };
        logger.log('warn', 'the folder of an earlier prewarm was not removed', fields);
      },
    );
}

/** All tasks are attempted. PREWARM_FAILED names those that failed; their folders stay. A signal ends it with its reason. */
export async function prewarm(parts: PrewarmParts, signal: AbortSignal): Promise<void> {
  const { options, logger } = parts;
  const limiter = new Limiter(atOnce);
  // What is under way at a cancellation is waited for: its sandbox must be gone before the environment is closed.
  const lines = await Promise.all(
    options.prewarm.map((task) =>
      // Only the signal keeps a task from its attempt.
      limiter.run(signal, () => prewarmOne(task, parts, signal)).catch(() => null),
    ),
  );
  signal.throwIfAborted();
  const failures = lines.filter((line) => line !== null);
  for (const failure of failures) logger.log('error', `prewarm: ${failure}`);
  if (failures.length === 0) return;
  const of = `${failures.length} of ${options.prewarm.length} tasks`;
  throw new RolloutError('PREWARM_FAILED', `${of} could not be prepared:\n${failures.join('\n')}`, {
    phase: 'environment',
    field: 'backend.native.prewarm',
    remedy: 'Look at the folders that are named, correct the tasks or leave them out.',
  });
}

/** The line of a failure; null = it went well. */
async function prewarmOne(
  { entry, warnings }: PrewarmTask,
  parts: PrewarmParts,
  signal: AbortSignal,
): Promise<string | null> {
  const { trialsDir, logger, ports } = parts;
  const name = namePrefix + randomBytes(16).toString('hex');
  const dir = path.join(trialsDir, name);
  const label = ports.labelOf?.(entry) ?? labelOf(entry);
  for (const warning of warnings) logger.log('warn', `prewarm: ${label}: ${warning}`);
  const code = await runOne(entry, { parts, name }, signal).catch(codeOf);
  // What a cancellation leaves no line would name.
  const isRemoved = signal.aborted || (code === null && parts.options.removesSuccessfulTrials);
  const removal = isRemoved ? await removed(dir) : null;
  const problem = code ?? removal;
  return problem && `${label} [${problem}]; ${existsSync(dir) ? dir : 'no folder was made'}`;
}

function removed(dir: string): Promise<string | null> {
  return rm(dir, { recursive: true, force: true }).then(() => null, codeOf);
}

async function runOne(
  entry: PrewarmTask['entry'],
  { parts, name }: { readonly parts: PrewarmParts; readonly name: string },
  signal: AbortSignal,
): Promise<string | null> {
  const { options, trials, ports, trialsDir } = parts;
  const { task } = await raceSignal(ports.findTask(entry, signal), signal);
  const config = prewarmTrialConfig(options, { entry: task.entry, trialsDir, name });
  const trial = trials.createTrial(
    {
      ...{ config, taskName: task.name, taskId: task.taskId, source: task.entry.source },
      load: async (loading) => ({
        ...(await task.load(loading)),
        skills: await ports.loadSkills(config.agent.skills, loading),
      }),
    },
    { observe: () => undefined, admitAgent: () => Promise.resolve(() => undefined) },
  );
  await trial.run(signal);
  return trial.failure === null ? null : trial.failure.code;
}

function codeOf(error: unknown): string {
  return isRolloutError(error) ? error.code : 'INTERNAL';
}
