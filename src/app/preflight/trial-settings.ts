import { compileNativeOptions } from '../../backends/native/native-options.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { environmentConfigSchema, type EnvironmentConfig } from '../../wire/harbor/run-config.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { optionsOf } from '../serve/open-backend.ts';

/** What the backend's trials have in common. */
export interface TrialSettings {
  readonly environment: EnvironmentConfig;
  readonly allowUnsandboxed: boolean;
  readonly taskKey: string;
  readonly prewarm: readonly TaskEntry[];
  /** Model calls come from inside the sandbox, which has to reach the gateway. */
  readonly callsFromSandbox: boolean;
  /** As the engine is asked for it. */
  readonly model: string | null;
}

const defaultModel = 'osmosis-rollout';

/** null = the backend runs no sandboxes. CONFIG_INVALID. */
export function trialSettings(config: ServeConfig): TrialSettings | null {
  const options = optionsOf(config);
  switch (config.backend.kind) {
    case 'native': {
      const native = compileNativeOptions(options);
      return {
        environment: native.environment,
        allowUnsandboxed: native.allowUnsandboxed,
        taskKey: native.taskKey,
        prewarm: native.prewarm.map(({ entry }) => entry),
        callsFromSandbox: native.binding.callsFromSandbox,
        model: native.model?.replace(/^openai\//, '') ?? defaultModel,
      };
    }
    case 'harbor':
      return {
        environment: environmentConfigSchema.parse(
          options['environment_config'] ?? {
            type: options['environment'] ?? 'local',
            kwargs: options['environment_options'] ?? {},
          },
        ),
        allowUnsandboxed: options['allow_unsandboxed'] === true,
        taskKey: typeof options['task_key'] === 'string' ? options['task_key'] : 'harbor_task',
        prewarm: [],
        callsFromSandbox: true,
        model: defaultModel,
      };
    default:
      return null;
  }
}

/** For the check of the model, also where the backend's options are wrong or it runs no trials. */
export function modelName(settings: TrialSettings | null): string | null {
  return settings === null ? defaultModel : settings.model;
}
