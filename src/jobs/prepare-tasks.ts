import { Limiter } from '../core/limiter.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';
import { hostVariableUses, type VariableUse } from './host-variables.ts';
import type { JobTask, TaskInputs } from './job-task.ts';

export interface PreparedTask {
  readonly task: JobTask;
  /** null when it could not be loaded; its trials say why. */
  readonly inputs: TaskInputs | null;
  readonly variables: readonly VariableUse[];
}

export interface PrepareOptions {
  readonly config: JobConfig;
  readonly hostVariables: HostVariables;
  readonly signal: AbortSignal;
}

const concurrentLoads = 8;

/** Loads every task before any trial starts. A task that fails here fails again when its trials load it. */
export async function prepareTasks(
  tasks: readonly JobTask[],
  options: PrepareOptions,
): Promise<PreparedTask[]> {
  const places = new Limiter(concurrentLoads);
  return await Promise.all(
    tasks.map((task) => places.run(options.signal, () => prepare(task, options))),
  );
}

async function prepare(task: JobTask, options: PrepareOptions): Promise<PreparedTask> {
  const { config, hostVariables, signal } = options;
  try {
    const inputs = await task.load(signal);
    return { task, inputs, variables: hostVariableUses(inputs.task, config, hostVariables) };
  } catch {
    signal.throwIfAborted();
    return { task, inputs: null, variables: [] };
  }
}
