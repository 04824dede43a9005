import path from 'node:path';
import { compileHarborOptions, type HarborOptions } from '../../backends/harbor/harbor-options.ts';
import { stageTask } from '../../backends/harbor/staged-task.ts';
import { selectTask } from '../../backends/harbor/task-selection.ts';
import { readHarborTask } from '../../backends/native/harbor-task.ts';
import { compileNativeOptions, type NativeOptions } from '../../backends/native/native-options.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { isFile } from '../../tasks/file-presence.ts';
import { taskTomlName } from '../../tasks/read-task-toml.ts';
import type { EnvironmentConfig } from '../../wire/harbor/run-config.ts';
import { taskEntrySchema, type TaskEntry } from '../../wire/harbor/task-entry.ts';
import { withGatewayAddress } from '../serve/gateway-address.ts';
import { optionsOf } from '../serve/open-backend.ts';

/** What the backend's trials have in common. */
export interface TrialSettings {
  readonly environment: EnvironmentConfig;
  readonly allowUnsandboxed: boolean;
  /** Of a row, as the backend reads it. REFERENCE_INVALID. */
  readonly taskOf: (metadata: Readonly<Record<string, unknown>> | null) => Promise<{
    readonly entry: TaskEntry;
    readonly warnings: readonly string[];
  }>;
  /** Key of the metadata that names a task. */
  readonly taskKey: string;
  /** Tasks that the configuration itself names. */
  readonly ownTasks: readonly TaskEntry[];
  /** The same, as metadata of rows. */
  readonly ownRows: readonly {
    readonly label: string;
    readonly metadata: Readonly<Record<string, unknown>>;
  }[];
  /** A task as rollouts get it, where rows complete it: a copy in `dir`. Absent = as it is. */
  readonly complete?: (
    entry: TaskEntry,
    at: { readonly dir: string; readonly signal: AbortSignal },
  ) => Promise<TaskEntry>;
  /** A task without tests is an error. */
  readonly needsTests: boolean;
  /** Model calls come from inside the sandbox, which has to reach the gateway. */
  readonly callsFromSandbox: boolean;
  /** As the engine is asked for it. */
  readonly model: string;
}

const defaultModel = 'osmosis-rollout';

/** null = the backend runs no sandboxes. CONFIG_INVALID. */
export function trialSettings(config: ServeConfig): TrialSettings | null {
  const settings = ofBackend(config);
  if (settings === null) return null;
  return { ...settings, environment: withGatewayAddress(settings.environment, config) };
}

function ofBackend(config: ServeConfig): TrialSettings | null {
  const options = optionsOf(config);
  const { baseDir } = config;
  if (config.backend.kind === 'native') {
    const native = compileNativeOptions(options);
    const { taskKey } = native;
    return {
      ...ofTrials(native),
      taskOf: async (metadata) => Promise.resolve(readHarborTask(metadata, { taskKey, baseDir })),
      ...{ taskKey, needsTests: true },
      ownTasks: native.prewarm.map(({ entry }) => entry),
      ownRows: [],
    };
  }
  if (config.backend.kind !== 'harbor') return null;
  const harbor = compileHarborOptions(options, baseDir);
  const isTemplate = harbor.taskMode === 'template';
  return {
    ...ofTrials(compileNativeOptions(harbor.trialOptions)),
    taskOf: (metadata) => selectTask(metadata, harbor, baseDir),
    ...{ taskKey: 'harbor_task', needsTests: false },
    complete: (entry, at) => completed(entry, { ...at, harbor }),
    ownTasks: isTemplate ? [taskEntrySchema.parse({ path: harbor.tasksDir })] : [],
    ownRows: harbor.prewarm,
  };
}

/** A template needs no instruction: rows bring it. */
async function completed(
  entry: TaskEntry,
  at: { readonly dir: string; readonly signal: AbortSignal; readonly harbor: HarborOptions },
): Promise<TaskEntry> {
  const { path: source, git_url: gitUrl } = entry;
  if (at.harbor.taskMode !== 'template' || source === null || gitUrl !== null) return entry;
  const has = (name: string): Promise<boolean> => isFile(path.join(source, name));
  if (!(await has(taskTomlName)) || (await has('instruction.md'))) return entry;
  const prompt = [{ role: 'user', content: '' }];
  const request = { id: 'preflight', label: null, metadata: null, prompt };
  const query = { source, to: at.dir, isTemplate: true, request, options: at.harbor };
  return taskEntrySchema.parse({ path: (await stageTask(query, at.signal)).dir });
}

function ofTrials({ environment, allowUnsandboxed, binding, model }: NativeOptions) {
  const { callsFromSandbox } = binding;
  const name = modelName(model);
  return { environment, allowUnsandboxed, callsFromSandbox, model: name };
}

/** `null`: what is asked for where nothing else is said. */
export function modelName(model: string | null): string {
  return model?.replace(/^openai\//, '') ?? defaultModel;
}
