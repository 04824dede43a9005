import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/core/clock.ts';
import { RolloutError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { JobFolder } from '../../src/jobs/job-folder.ts';
import type { JobEvent } from '../../src/jobs/job-events.ts';
import { Job, type JobPlan } from '../../src/jobs/job.ts';
import type { JobTask, TaskInputs } from '../../src/jobs/job-task.ts';
import { planTrials, type PlannedTrial } from '../../src/jobs/plan.ts';
import { jobConfigSchema, type JobConfig } from '../../src/wire/harbor/job-config.ts';
import { taskEntrySchema } from '../../src/wire/harbor/task-entry.ts';
import type { FakeTrials } from '../fakes/fake-trials.ts';

/** A clock whose sleeps end at once and are remembered. */
export class JumpingClock implements Clock {
  readonly sleeps: number[] = [];
  #ms = Date.UTC(2030, 0, 1);

  now(): Date {
    return new Date(this.#ms);
  }
  monotonicMs(): number {
    return this.#ms;
  }
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.sleeps.push(ms);
    this.#ms += ms;
    return Promise.resolve();
  }
}

export function fakeTask(name: string, problem: RolloutError | null = null): JobTask {
  return {
    entry: taskEntrySchema.parse({ path: `/tasks/${name}` }),
    name,
    taskId: { path: `/tasks/${name}` },
    source: null,
    // Fake trials only look at whether loading succeeds.
    load: () => (problem === null ? Promise.resolve({} as TaskInputs) : Promise.reject(problem)),
  };
}

export function jobConfig(fields: Record<string, unknown> = {}): JobConfig {
  return jobConfigSchema.parse({ agents: [{ name: 'nop' }], ...fields });
}

export class JobFixture implements AsyncDisposable {
  readonly folder: JobFolder;
  readonly clock = new JumpingClock();
  readonly events: JobEvent[] = [];

  private constructor(dir: string) {
    this.folder = new JobFolder(dir);
  }

  static async create(): Promise<JobFixture> {
    return new JobFixture(await mkdtemp(join(tmpdir(), 'job-')));
  }

  plan(
    config: JobConfig,
    tasks: readonly JobTask[],
    taken: readonly string[] = [],
  ): PlannedTrial[] {
    return planTrials({
      config,
      jobId: 'job-1',
      jobDir: this.folder.dir,
      tasks,
      takenNames: new Set(taken),
    });
  }

  job(
    config: JobConfig,
    trials: FakeTrials,
    plan: Partial<JobPlan> & Pick<JobPlan, 'trials'>,
  ): Job {
    return new Job(
      { id: 'job-1', config, finished: [], retriesBefore: 0, startedAt: null, ...plan },
      {
        folder: this.folder,
        createTrial: trials.factory,
        clock: this.clock,
        logger: silentLogger,
        skills: { load: () => Promise.resolve([]) },
        scriptMetric: () => Promise.resolve({ scripted: 1 }),
        observe: (event) => void this.events.push(event),
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder.dir, { recursive: true, force: true });
  }
}
