/** One job from its configuration to its report: the work behind `slipway run` and `slipway jobs resume`. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { isRolloutError } from '../core/errors.ts';
import type { PoolUse } from '../environments/shared/warm-pool.ts';
import type { ReapReport } from '../environments/shared/reaper.ts';
import type { EvalGroup } from '../jobs/eval-groups.ts';
import { computeScriptMetric } from '../jobs/metric-script.ts';
import { Job, type JobReport } from '../jobs/job.ts';
import { dumpJobLock, makeJobLock, type LockableTrial } from '../jobs/job-lock.ts';
import { JobFolder } from '../jobs/job-folder.ts';
import type { JobEvent } from '../jobs/job-events.ts';
import { planTrials, type PlannedTrial } from '../jobs/plan.ts';
import { prepareTasks, type PreparedTask } from '../jobs/prepare-tasks.ts';
import type { VariableUse } from '../jobs/host-variables.ts';
import {
  checkSameConfig,
  checkSameLock,
  jobIdOf,
  readStoredJob,
  resumeTrials,
  type Resumption,
  type StoredJob,
} from '../jobs/resume.ts';
import { JobSkills } from '../jobs/skills.ts';
import type { TrialSummary } from '../jobs/trial-summary.ts';
import { dumpNonDefaultJobConfig } from '../wire/harbor/job-config-dump.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import type { JobLock } from '../wire/harbor/job-lock.ts';
import type { JobResult } from '../wire/harbor/job-result.ts';
import { absolutePaths } from './absolute-paths.ts';
import type { SourceTrial } from './trials.ts';
import { ownJob } from './job-owner.ts';
import { FileLogger } from './file-logger.ts';
import type { AppPorts } from './ports.ts';
import { openSandboxRun } from './sandbox-run.ts';

export type { EvalGroup, JobEvent, JobReport, JobResult, TrialSummary, VariableUse };

export interface RunJobOptions {
  readonly config: JobConfig;
  /** Finished trials to grade again, one per task of `config`; null = an ordinary job. */
  readonly sources: readonly SourceTrial[] | null;
  /** Plain processes may stand in for a sandbox. */
  readonly allowUnsandboxed: boolean;
  readonly observe: (event: JobEvent) => void;
  /** Something for people: a warning, a cleaned-up sandbox. */
  readonly note: (text: string) => void;
  /** Asked once, before anything runs, when tasks use variables of the host; false ends the job. */
  readonly confirmVariables: (uses: readonly VariableUse[]) => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface JobOutcome {
  readonly jobName: string;
  readonly jobId: string;
  readonly dir: string;
  readonly report: JobReport;
  readonly durationMs: number;
  readonly environment: { readonly kind: string; readonly isolation: string };
}

/**
 * null when the person declined. Rejects with CONFIG_INVALID, JOB_CONFLICT, JOB_UNREADABLE, AGENT_UNKNOWN, ENVIRONMENT_UNKNOWN,
 * ENVIRONMENT_UNAVAILABLE or a dataset's error before any trial starts; after that every failure is a trial's.
 */
export async function runJob(options: RunJobOptions, ports: AppPorts): Promise<JobOutcome | null> {
  const startedMs = ports.clock.monotonicMs();
  const { machine } = ports;
  const asked = absolutePaths(options.config, machine.cwd);
  for (const { import_path: importPath, name } of asked.agents)
    await ports.resolveAgent(importPath ?? name ?? '');
  using held = new DisposableStack();
  const folder =
    asked.job_name === ''
      ? newFolder(asked.jobs_dir, ports, held)
      : new JobFolder(join(asked.jobs_dir, asked.job_name));
  if (asked.job_name !== '') held.use(ownJob(folder, ports));
  const jobName = basename(folder.dir);
  const stored = await readStoredJob(folder);
  if (stored !== null) {
    // Before anything is started; datasets are compared when they are pinned.
    const { datasets } = stored.config;
    checkSameConfig(stored.config, { ...asked, datasets }, machine.variables);
  }

  await using run = await openSandboxRun(
    {
      environment: asked.environment,
      allowUnsandboxed: options.allowUnsandboxed,
      signal: options.signal,
      note: options.note,
    },
    ports,
  );
  reportCleaning(run.cleaning, options.note);
  if (run.provider.isolation === 'none') options.note(unsandboxedWarning);
  const found = await ports.taskSource.tasks(asked, options.signal);
  found.warnings.forEach(options.note);
  const config: JobConfig = { ...asked, datasets: [...found.datasets] };
  if (stored !== null) checkSameConfig(stored.config, config, machine.variables);
  const prepared = await prepareTasks(found.tasks, {
    config,
    hostVariables: machine.variables,
    signal: options.signal,
  });
  if (!(await confirm(prepared, options))) return null;

  await folder.create();
  const jobId = (stored && jobIdOf(stored)) ?? randomUUID();
  const { planned, resumption } = plan({
    ...{ config, folder, stored, jobId, prepared, ports },
    sources: options.sources,
  });
  const skills = new JobSkills(ports.skillSources);
  const lock = await lockOf({ config, planned, prepared, skills, ports, signal: options.signal });
  skills.warnings.forEach(options.note);
  checkSameLock(stored?.lock ?? null, lock);
  for (const { name, reason } of resumption.leftAlone)
    options.note(`left alone: ${folder.trialDir(name)} (${reason})`);
  for (const name of resumption.incomplete) await folder.removeTrial(name);
  await folder.write(folder.configFile, {
    ...dumpNonDefaultJobConfig({ ...config, job_name: jobName }, machine.variables),
  });
  const { created_at, harbor } = stored?.lock ?? lock;
  await folder.write(
    folder.lockFile,
    dumpJobLock({ ...lock, created_at, harbor }, machine.variables),
  );

  await using logger = new FileLogger(folder.logFile, {
    level: config.debug ? 'debug' : 'info',
    clock: ports.clock,
  });
  const metrics = [...config.metrics, ...found.metrics];
  const job = new Job(
    {
      id: jobId,
      config: { ...config, metrics },
      trials: resumption.remaining,
      finished: resumption.finished,
      retriesBefore: stored?.result?.stats.n_retries ?? 0,
      startedAt: stored?.result?.started_at ?? null,
    },
    {
      folder,
      clock: ports.clock,
      logger,
      createTrial: run.trialFactory(logger),
      skills,
      scriptMetric: (script, rewards) =>
        computeScriptMetric(resolve(machine.cwd, script), rewards, options.signal),
      observe: options.observe,
    },
  );
  run.expect(resumption.remaining);
  const report = await job.run(options.signal);
  notePoolUse(run.poolUse(), options.note);
  return {
    jobName,
    jobId,
    dir: folder.dir,
    report,
    durationMs: ports.clock.monotonicMs() - startedMs,
    environment: { kind: run.provider.kind, isolation: run.provider.isolation },
  };
}

interface PlanInputs {
  readonly config: JobConfig;
  readonly folder: JobFolder;
  readonly stored: StoredJob | null;
  readonly jobId: string;
  readonly prepared: readonly PreparedTask[];
  readonly ports: AppPorts;
  readonly sources: readonly SourceTrial[] | null;
}

function plan(inputs: PlanInputs): {
  readonly planned: readonly PlannedTrial[];
  readonly resumption: Resumption;
} {
  const { config, folder, stored, jobId, prepared, ports } = inputs;
  const ordinary = planTrials({
    config,
    jobId,
    jobDir: folder.dir,
    tasks: prepared.map(({ task }) => task),
    takenNames: new Set(stored?.trials.map(({ name }) => name)),
  });
  const planned = ordinary.map((trial, index) => {
    const source = inputs.sources?.[index];
    return source ? { ...trial, config: { ...trial.config, source_trial: source } } : trial;
  });
  const nothing: Resumption = { finished: [], remaining: planned, incomplete: [], leftAlone: [] };
  const resumption =
    stored === null
      ? nothing
      : resumeTrials(stored, planned, { jobId, hostVariables: ports.machine.variables });
  return { planned, resumption };
}

async function lockOf(inputs: {
  readonly config: JobConfig;
  readonly planned: readonly PlannedTrial[];
  readonly prepared: readonly PreparedTask[];
  readonly skills: JobSkills;
  readonly ports: AppPorts;
  readonly signal: AbortSignal;
}): Promise<JobLock> {
  const { config, planned, prepared, ports, signal } = inputs;
  const loaded = new Map(prepared.map(({ task, inputs: found }) => [task, found]));
  const trials: LockableTrial[] = [];
  for (const { task, config: trial } of planned) {
    const found = loaded.get(task) ?? null;
    if (found === null) continue;
    const skills = await inputs.skills.load(trial.agent.skills, signal);
    trials.push({ config: trial, inputs: { ...found, skills } });
  }
  return await makeJobLock({
    config,
    trials,
    hostVariables: ports.machine.variables,
    createdAt: ports.clock.now(),
    version: ports.version,
    signal,
  });
}

async function confirm(
  prepared: readonly PreparedTask[],
  options: RunJobOptions,
): Promise<boolean> {
  const uses = new Map(
    prepared.flatMap(({ variables }) => variables).map((use) => [`${use.name} ${use.field}`, use]),
  );
  return uses.size === 0 || (await options.confirmVariables([...uses.values()]));
}

const unsandboxedWarning =
  'warning: no sandbox (isolation: none): agents and tests run as plain processes of this user, who can reach its files, its processes and the network';

function reportCleaning({ removed, failed }: ReapReport, note: (text: string) => void): void {
  if (removed.length > 0)
    note(
      `removed what dead runs had left: ${removed.length === 1 ? '1 sandbox' : `${removed.length} sandboxes`}`,
    );
  for (const { error } of failed) note(`not cleaned up: ${error.describe()}`);
}

function notePoolUse(use: PoolUse | null, note: (text: string) => void): void {
  if (use === null) return;
  const { hits, misses, unused } = use;
  const share = hits + misses === 0 ? 0 : Math.round((100 * hits) / (hits + misses));
  note(`pool: ${hits} of ${hits + misses} sandboxes were ready (${share} %), ${unused} unused`);
}

/** A folder that nobody has, named after the time; runs that start in one second get different ones. */
function newFolder(jobsDir: string, ports: AppPorts, held: DisposableStack): JobFolder {
  const base = nameFromTime(ports.clock.now());
  for (let n = 1; ; n += 1) {
    const folder = new JobFolder(join(jobsDir, n === 1 ? base : `${base}-${n}`));
    try {
      using owned = new DisposableStack();
      owned.use(ownJob(folder, ports));
      // Looked for under the lock: a run that was quicker has made it before it let go.
      if (existsSync(folder.dir)) continue;
      held.use(owned.move());
      return folder;
    } catch (error) {
      if (!isRolloutError(error, 'JOB_CONFLICT')) throw error;
    }
  }
}

/** Harbor's default name: local time. */
function nameFromTime(time: Date): string {
  const pad = (value: number): string => String(value).padStart(2, '0');
  const day = [time.getFullYear(), pad(time.getMonth() + 1), pad(time.getDate())].join('-');
  return `${day}__${[time.getHours(), time.getMinutes(), time.getSeconds()].map(pad).join('-')}`;
}
