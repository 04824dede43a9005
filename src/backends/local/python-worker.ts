/** A worker that is a process of Python: `python/slipway_runner` in its role `workflow`. */
import { z } from 'zod';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { RunnerBroken, RunnerEnded } from '../../runner/runner-ended.ts';
import { RunnerProcess } from '../../runner/runner-process.ts';
import { runnerReportSchema } from '../../wire/runner/runner-messages.ts';
import type { ProcessOptions } from './local-options.ts';
import { WorkerEnded, type RolloutWorker, type WorkerKind } from './rollout-worker.ts';
import type { ThreadOrder, ThreadReport } from './thread-messages.ts';

/** JSON of a sample. */
const reportSchema = runnerReportSchema(z.string());

type Variables = Readonly<Record<string, string | undefined>>;

export function processesFor(options: ProcessOptions, variables: Variables): WorkerKind {
  return {
    noun: 'process',
    make: (onGone) => new PythonWorker(options, { variables, onGone }),
  };
}

class PythonWorker implements RolloutWorker {
  readonly ready: Promise<void>;
  readonly #runner: RunnerProcess;
  #run = 0;

  constructor(
    options: ProcessOptions,
    { variables, onGone }: { readonly variables: Variables; readonly onGone: () => void },
  ) {
    const { interpreter, workflow, grader, workflowConfig, graderConfig, memoryMb } = options;
    this.#runner = new RunnerProcess({
      role: 'workflow',
      interpreter,
      settings: { workflow, grader, workflowConfig, graderConfig },
      variables,
      onGone,
      ...(memoryMb === null ? {} : { memoryMb }),
    });
    this.ready = this.#runner.ready.then(
      () => undefined,
      (error: unknown) => Promise.reject(whyNotReady(error, interpreter.python)),
    );
    this.ready.catch(() => undefined);
  }

  get isGone(): boolean {
    return this.#runner.isGone;
  }

  set onPrint(listener: ((text: string) => void) | null) {
    this.#runner.onPrint = listener;
  }

  async carryOut(order: ThreadOrder): Promise<ThreadReport> {
    this.#run += 1;
    try {
      const { value: sample, ...report } = await this.#runner.carryOut({
        order,
        report: reportSchema,
      });
      return { run: this.#run, sample, ...report };
    } catch (error) {
      if (!(error instanceof RunnerEnded)) throw error;
      throw new WorkerEnded(error.message, error.kind !== 'exited');
    }
  }

  cancel(reason: string): void {
    this.#runner.cancel(reason);
  }

  async terminate(): Promise<void> {
    await this.#runner.terminate();
  }
}

function whyNotReady(error: unknown, python: string): RolloutError {
  if (error instanceof RunnerBroken && error.missing !== null)
    return new RolloutError(
      'WORKFLOW_PACKAGE_MISSING',
      `${python} does not have the package ${error.missing}: ${error.message}`,
      {
        phase: 'config',
        field: 'python.interpreter',
        remedy: `Install ${error.missing} for this Python, or name another; a server does not start without it.`,
      },
    );
  if (error instanceof RunnerBroken)
    return new RolloutError('WORKFLOW_INVALID', error.message, {
      phase: 'config',
      field: 'backend.local',
      remedy:
        'Correct the code, or its name; modules are looked for in python.path and beside the configuration.',
    });
  const words = error instanceof RunnerEnded ? error.lastWords : '';
  const what = `${python} ${messageOf(error)}${words === '' ? '' : `: ${words}`}`;
  const isOurs =
    error instanceof RunnerEnded && (error.kind === 'exited' || error.kind === 'unstartable');
  return new RolloutError(isOurs ? 'WORKFLOW_INVALID' : 'RUNNER_FAILED', what, {
    phase: 'config',
    field: 'python.interpreter',
    remedy: 'Name a Python of 3.9 or later that has the packages of the workflow.',
  });
}
