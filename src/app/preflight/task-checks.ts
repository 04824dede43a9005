/** Task by task: it is found and valid; its images build, its sandboxes start and are gone again; from inside the gateway is reached. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { dumpTaskEntry } from '../../wire/harbor/dump.ts';
import { compileJobConfig } from '../../config/job-request.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { TaskInputs } from '../../jobs/job-task.ts';
import type { Environment } from '../../environments/environment.ts';
import type { PreflightCheckName } from '../../wire/preflight-report.ts';
import type { AppPorts } from '../ports.ts';
import type { CheckRun } from './check-run.ts';
import { firmer, GatewayProbe } from './gateway-probe.ts';
import { namedTasks, type NamedTask, type TaskSources } from './named-tasks.ts';
import { TaskSandboxes } from './task-sandboxes.ts';
import type { TrialSettings } from './trial-settings.ts';
import { WorkflowProbe } from './workflow-probe.ts';
import { failedWith, passed, skipped, warned, type Verdict } from './verdict.ts';

export interface TaskCheckOptions {
  readonly config: ServeConfig;
  readonly settings: TrialSettings | null;
  readonly sources: TaskSources;
  /** For what a check writes. */
  readonly scratchDir: string;
  readonly wants: (name: PreflightCheckName) => boolean;
}

/** Over a repository or a package that has to be fetched. */
const findMs = 300_000;
const openMs = 60_000;
/** Beyond what the task itself allows for the build of its image. */
const marginMs = 120_000;
const atOnce = 2;

const runsTasks: ReadonlySet<string> = new Set(['native', 'harbor']);

const names = ['tasks', 'sandbox', 'workflow', 'gateway'] as const;
/** What is asked from inside a sandbox. */
const fromInside = names.slice(2);

export async function checkTasks(
  options: TaskCheckOptions,
  { ports, run }: { readonly ports: AppPorts; readonly run: CheckRun },
): Promise<void> {
  const { config, settings, sources, wants } = options;
  const skipAll = (why: string): void => {
    for (const name of names) if (wants(name)) run.skip(name, why);
  };
  if (!names.some(wants)) return;
  const { kind } = config.backend;
  if (settings === null) {
    skipAll(
      runsTasks.has(kind) ? 'the backend is set wrongly' : `the backend ${kind} runs no tasks`,
    );
    return;
  }
  let tasks: readonly NamedTask[] = [];
  try {
    tasks = await namedTasks(sources, settings);
  } catch (error) {
    run.note('tasks', null, failedWith(error));
    for (const name of names.slice(1)) if (wants(name)) run.skip(name, 'no task is known');
    return;
  }
  if (tasks.length === 0) {
    skipAll('no task is named: --task, --dataset, or the configuration');
    return;
  }
  await new TaskChecks({ ...options, settings, ports, run }).run(tasks);
}

class TaskChecks {
  readonly #parts;
  readonly #limiter = new Limiter(atOnce);
  /** The first sandbox that asks; the others need not. */
  #probe: GatewayProbe | null = null;
  #gateway: Verdict | null = null;
  /** null = the backend loads nothing of the user in a sandbox. */
  #workflow: WorkflowProbe | null = null;
  #hasLookedAtWorkflow = false;

  constructor(
    parts: Omit<TaskCheckOptions, 'settings'> & {
      readonly settings: TrialSettings;
      readonly ports: AppPorts;
      readonly run: CheckRun;
    },
  ) {
    this.#parts = parts;
  }

  async run(tasks: readonly NamedTask[]): Promise<void> {
    const { run, wants } = this.#parts;
    const found = new Map<NamedTask, TaskInputs>();
    // One that stops the whole stops those beside it.
    using ended = new LinkedAbort([run.signal]);
    await this.#each(tasks, ended, async (task) => {
      await run.check({
        ...{ name: 'tasks', subject: task.label, limitMs: findMs },
        work: async (signal) => {
          const { inputs, warnings } = await this.#find(task, signal);
          found.set(task, inputs);
          const what = `${inputs.task.name} is found and valid`;
          return warnings.length === 0
            ? passed(what)
            : warned(`${what}; ${warnings.join('; ')}`, { remedy: 'Pin what is not pinned.' });
        },
      });
    });
    if (!wants('sandbox')) return;
    const missing = tasks.filter((task) => !found.has(task));
    for (const { label } of missing) run.skip('sandbox', 'the task is not usable', label);
    const usable = tasks.flatMap((task) => {
      const inputs = found.get(task);
      return inputs === undefined ? [] : [{ task, inputs }];
    });
    if (usable.length > 0) await this.#tryOut(usable, ended);
    else this.#skipInside();
  }

  #skipInside(): void {
    const { run, wants } = this.#parts;
    for (const name of fromInside)
      if (wants(name)) run.skip(name, 'there is no sandbox to ask from');
  }

  async #each<T>(
    items: readonly T[],
    ended: LinkedAbort,
    work: (item: T) => Promise<void>,
  ): Promise<void> {
    const all = items.map((item) =>
      this.#limiter
        .run(ended.signal, async () => work(item))
        .catch((error: unknown) => {
          ended.abort(error);
          throw error;
        }),
    );
    await Promise.allSettled(all);
    await Promise.all(all);
  }

  async #find(
    { entry, warnings }: NamedTask,
    signal: AbortSignal,
  ): Promise<{ readonly inputs: TaskInputs; readonly warnings: readonly string[] }> {
    if (entry instanceof RolloutError) throw entry;
    const { settings, scratchDir } = this.#parts;
    const dir = path.join(scratchDir, 'tasks', randomUUID());
    const whole = (await settings.complete?.(entry, { dir, signal })) ?? entry;
    const config = compileJobConfig({
      tasks: [dumpTaskEntry(whole)],
      verifier: { disable: !settings.needsTests },
    });
    const found = await this.#parts.ports.taskSource.tasks(config, signal);
    const [task] = found.tasks;
    if (task === undefined) throw new TypeError('one task per reference');
    const inputs = await task.load(signal);
    const all = [...warnings, ...found.warnings, ...inputs.task.warnings];
    return { inputs, warnings: [...new Set(all)] };
  }

  async #tryOut(
    usable: readonly { readonly task: NamedTask; readonly inputs: TaskInputs }[],
    ended: LinkedAbort,
  ): Promise<void> {
    const { config, settings, ports, run, wants } = this.#parts;
    const notes: string[] = [];
    const opening = new LinkedAbort([ended.signal], {
      ms: openMs,
      reason: () =>
        new RolloutError(
          'PREFLIGHT_TIMEOUT',
          `the environment is not open after ${openMs / 1000} s`,
          {
            phase: 'environment',
            remedy: 'See whether its runtime answers.',
          },
        ),
    });
    await using stack = new AsyncDisposableStack();
    let sandboxes: TaskSandboxes;
    try {
      sandboxes = stack.use(
        await TaskSandboxes.open(
          { settings, note: (text) => notes.push(text), signal: opening.signal },
          ports,
        ),
      );
      // A check that was left behind still needs what it destroys its sandboxes with.
      stack.defer(() => run.settle());
    } catch (error) {
      run.signal.throwIfAborted();
      run.note('sandbox', settings.environment.type, failedWith(error));
      this.#skipInside();
      return;
    } finally {
      opening[Symbol.dispose]();
    }
    if (wants('gateway')) await this.#openProbe(sandboxes, config, stack);
    if (wants('workflow')) await this.#openWorkflow(config);
    await this.#each(usable, ended, async ({ task, inputs }) => {
      await run.check({
        ...{ name: 'sandbox', subject: task.label },
        limitMs: inputs.task.environment.buildTimeoutMs + marginMs,
        work: (signal) => this.#tryOne(sandboxes, { task, inputs, notes }, signal),
      });
    });
    if (this.#workflow !== null && !this.#hasLookedAtWorkflow)
      run.skip('workflow', 'no sandbox came up to load it in');
    if (wants('gateway'))
      run.note('gateway', null, this.#gateway ?? skipped('no sandbox came up to ask from'));
  }

  async #openWorkflow(config: ServeConfig): Promise<void> {
    const { run, ports, scratchDir } = this.#parts;
    try {
      this.#workflow = await WorkflowProbe.open(config, { ports, scratchDir });
      if (this.#workflow === null)
        run.skip('workflow', `the backend ${config.backend.kind} loads none in a sandbox`);
    } catch (error) {
      run.note('workflow', null, failedWith(error));
    }
  }

  async #openProbe(
    sandboxes: TaskSandboxes,
    config: ServeConfig,
    stack: AsyncDisposableStack,
  ): Promise<void> {
    const { settings } = this.#parts;
    if (!sandboxes.hasHostEndpoint) {
      const why = 'this environment has no way from a sandbox to an address of the host';
      this.#gateway = settings.callsFromSandbox
        ? failedWith(
            new RolloutError('CAPABILITY_UNSUPPORTED', why, {
              phase: 'environment',
              field: 'backend.native.environment',
              remedy:
                'Choose another environment, or an agent that calls from this machine; sandboxes on other machines need --gateway-url.',
            }),
          )
        : skipped(why);
      return;
    }
    try {
      this.#probe = stack.use(await GatewayProbe.open(config));
    } catch (error) {
      this.#gateway = failedWith(error);
    }
  }

  /** In every sandbox: each image has packages of its own. */
  async #lookAtWorkflow(
    environment: Environment,
    label: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#workflow === null) return;
    const verdict = await this.#workflow.ask(environment, signal).catch(refused);
    signal.throwIfAborted();
    this.#hasLookedAtWorkflow = true;
    this.#parts.run.note('workflow', label, verdict);
  }

  async #tryOne(
    sandboxes: TaskSandboxes,
    at: { readonly task: NamedTask; readonly inputs: TaskInputs; readonly notes: string[] },
    signal: AbortSignal,
  ): Promise<Verdict> {
    const { entry } = at.task;
    if (entry instanceof RolloutError) throw entry;
    const warnings: string[] = at.notes.splice(0);
    const warn = (text: string): void => void warnings.push(text);
    const plan = await sandboxes.plan({ entry, inputs: at.inputs }, warn, signal);
    // An image without a program to ask with leaves the question to the next.
    const isAnswered = this.#gateway !== null && this.#gateway.status !== 'skipped';
    const probe = isAnswered ? null : this.#probe;
    const isNeeded = this.#parts.settings.callsFromSandbox;
    const {
      sandboxes: count,
      imageMs,
      bootMs,
    } = await sandboxes.tryOut(
      plan,
      {
        hostEndpoint: probe?.endpoint ?? null,
        inside: async (environment, limited) => {
          await this.#lookAtWorkflow(environment, at.task.label, limited);
          if (probe === null || this.#gateway?.status === 'ok') return;
          const found = await probe.ask(environment, { isNeeded }, limited).catch(refused);
          this.#gateway = firmer(this.#gateway, found);
        },
      },
      signal,
    );
    const what = `${count === 1 ? 'its sandbox starts, runs commands and is gone' : `its ${count} sandboxes start, run commands and are gone`}; image ${Math.round(imageMs)} ms, start ${Math.round(bootMs)} ms`;
    const more = warnings.filter((text) => !at.inputs.task.warnings.includes(text));
    return more.length === 0
      ? passed(what)
      : warned(`${what}; ${[...new Set(more)].join('; ')}`, {
          remedy: 'See docs/environments.md.',
        });
  }
}

function refused(error: unknown): Verdict {
  if (isRolloutError(error)) return failedWith(error);
  throw error;
}
