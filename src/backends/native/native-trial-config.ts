/**
 * The trial of one rollout: made anew each time, so that no rollout can change another's. The user's configuration is copied; the server owns the task,
 * the trial's name and folder, whether only the setup is run, and all multipliers; the request owns its limits, within the caps of the user.
 */
import { RolloutError } from '../../core/errors.ts';
import { folderName } from '../../archive/folder-name.ts';
import type { HostEndpoint } from '../../environments/environment.ts';
import type { ModelRoute } from '../../wire/rollout/model-route.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { trialConfigSchema, type TrialConfig } from '../../wire/harbor/trial-config.ts';
import type { ExecutionRequest } from '../execution-backend.ts';
import { wireAgent } from './bindings/wire-agent.ts';
import { modelNameSchema, type NativeOptions } from './native-options.ts';

interface Placing {
  readonly entry: TaskEntry;
  readonly trialsDir: string;
}

export function trialName(rolloutId: string): string {
  return `native-${folderName(rolloutId)}`;
}

/** REFERENCE_INVALID for a model that cannot be, MODEL_UNSPECIFIED for an agent without an address. */
export function nativeTrialConfig(
  request: ExecutionRequest,
  options: NativeOptions,
  at: Placing,
): TrialConfig {
  const { agentTimeoutMs, graderTimeoutMs } = request;
  const model = modelOf(request, options);
  const { agent, verifier, ...rest } = ownedFields(options, routeOf(request, options));
  return trialConfigSchema.parse({
    ...{ ...rest, task: at.entry, trial_name: trialName(request.id), trials_dir: at.trialsDir },
    agent: {
      ...{ ...agent, model_name: model },
      override_timeout_sec: secondsOf(agentTimeoutMs) ?? agent.override_timeout_sec,
    },
    verifier: {
      ...{ ...verifier, disable: false },
      override_timeout_sec: secondsOf(graderTimeoutMs) ?? verifier.override_timeout_sec,
    },
  });
}

/** A trial that starts the environment and sets the agent up, and nothing else: without an address, a key or a verifier. */
export function prewarmTrialConfig(
  options: NativeOptions,
  at: Placing & { readonly name: string },
): TrialConfig {
  const { agent, verifier, ...rest } = ownedFields(options, null);
  return trialConfigSchema.parse({
    ...{ ...rest, task: at.entry, trial_name: at.name, trials_dir: at.trialsDir },
    install_only: true,
    agent: { ...agent, model_name: options.model },
    verifier: { ...verifier, disable: true },
  });
}

/** The address that the agent's sandbox must reach, whatever its network policy; null = none of its calls come from there. */
export function hostEndpointOf(
  { route }: Pick<ExecutionRequest, 'route'>,
  { binding }: Pick<NativeOptions, 'binding'>,
): HostEndpoint | null {
  if (route === null || !binding.callsFromSandbox) return null;
  const { hostname, port, protocol } = new URL(route.baseUrl);
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port === '' ? (protocol === 'https:' ? 443 : 80) : port),
  };
}

function ownedFields(
  { agent, binding, environment, verifier }: NativeOptions,
  route: ModelRoute | null,
) {
  const copy = structuredClone({ agent, environment, verifier });
  return { ...copy, agent: { ...copy.agent, ...wireAgent(binding, copy.agent, route) } };
}

function routeOf({ route }: ExecutionRequest, { binding, agent }: NativeOptions) {
  if (binding.wiring === 'none' || route !== null) return route;
  const name = agent.name ?? agent.import_path ?? '';
  throw new RolloutError('MODEL_UNSPECIFIED', `agent ${name} needs a model`, {
    phase: 'config',
    field: 'chat_completions_url',
    remedy: 'Name the address of a model in chat_completions_url.',
  });
}

/** A row may name its own model; one that is there and cannot be used is a mistake, never the default. */
function modelOf({ metadata }: ExecutionRequest, { model, binding }: NativeOptions): string | null {
  if (metadata === null || !('harbor_model' in metadata) || binding.wiring === 'none') return model;
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
