/** The trial of one rollout: made anew each time, so that no rollout can change another's. */
import { RolloutError } from '../../core/errors.ts';
import { folderName } from '../../archive/folder-name.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { trialConfigSchema, type TrialConfig } from '../../wire/harbor/trial-config.ts';
import type { ExecutionRequest } from '../execution-backend.ts';
import { modelNameSchema, type NativeOptions } from './native-options.ts';

/** Of every rollout's conversation: a trainer wants it as it was, and a controller's address may know one model only. */
const terminusDefaults = { enable_summarize: false, proactive_summarization_threshold: 0 };

export function trialName(rolloutId: string): string {
  return `native-${folderName(rolloutId)}`;
}

/** REFERENCE_INVALID for a model that cannot be, MODEL_UNSPECIFIED for an agent without an address. */
export function nativeTrialConfig(
  request: ExecutionRequest,
  options: NativeOptions,
  at: { readonly entry: TaskEntry; readonly trialsDir: string },
): TrialConfig {
  const { agentTimeoutMs, graderTimeoutMs } = request;
  return trialConfigSchema.parse({
    task: at.entry,
    trial_name: trialName(request.id),
    trials_dir: at.trialsDir,
    agent: {
      name: options.agent,
      override_timeout_sec: secondsOf(agentTimeoutMs),
      override_setup_timeout_sec: options.agentSetupTimeoutSec,
      ...(options.agent === 'oracle'
        ? { kwargs: structuredClone(options.agentOptions) }
        : modelFields(request, options)),
    },
    environment: structuredClone(options.environment),
    verifier: { override_timeout_sec: secondsOf(graderTimeoutMs) },
  });
}

function modelFields(request: ExecutionRequest, options: NativeOptions) {
  const { route } = request;
  if (route === null)
    throw new RolloutError('MODEL_UNSPECIFIED', `agent ${options.agent} needs a model`, {
      phase: 'config',
      field: 'chat_completions_url',
      remedy: 'Name the address of a model in chat_completions_url.',
    });
  const kwargs = structuredClone(options.agentOptions) as Record<string, unknown>;
  const llm = kwargs['llm_kwargs'] as Readonly<Record<string, unknown>> | undefined;
  return {
    model_name: modelOf(request, options),
    kwargs: {
      ...terminusDefaults,
      ...kwargs,
      api_base: route.baseUrl,
      llm_kwargs: { ...llm, api_key: route.apiKey },
    },
  };
}

/** A row may name its own model; one that is there and cannot be used is a mistake, never the default. */
function modelOf({ metadata }: ExecutionRequest, { model }: NativeOptions): string {
  if (metadata === null || !('harbor_model' in metadata)) return model;
  const given = modelNameSchema.safeParse(metadata['harbor_model']);
  if (given.success) return given.data;
  throw new RolloutError('REFERENCE_INVALID', 'metadata.harbor_model is no model', {
    phase: 'config',
    field: 'metadata.harbor_model',
    remedy: 'Name it as openai/NAME, or leave harbor_model out.',
  });
}

/** Of a limit that is not over yet. */
function secondsOf(ms: number | null): number | null {
  return ms === null ? null : Math.max(ms, 1) / 1000;
}
