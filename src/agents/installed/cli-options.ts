/** Options of an agent's own (`agent.kwargs`) and its variables, checked before anything is installed. */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import { laxBoolean } from '../../wire/harbor/lax.ts';
import type { AgentOptions, RouteUpstream } from '../agent.ts';
import type { Cli, CliOptions } from './cli.ts';

/** An exact version: what is installed under a name stays what it is. */
const exactVersion = z.string().regex(/^\d+(\.\d+)+([-+.]?[\w.]+)*$/, 'must be an exact version');

export interface CompiledCli {
  readonly version: string;
  /** The kwarg `api_base`; null = not given. */
  readonly apiBase: string | null;
  /** What the gateway of a run is told. */
  readonly upstream: Pick<RouteUpstream, 'engineKind' | 'isCaptured'>;
  /** Without the provider. */
  readonly modelName: string;
  readonly options: CliOptions;
}

/** CONFIG_INVALID lists every problem; MODEL_UNSPECIFIED. */
export function compileCli(
  cli: Cli,
  { kwargs, modelName, env, hostVariables }: AgentOptions,
): CompiledCli {
  const given = Object.fromEntries(Object.entries(kwargs).filter(([, value]) => value !== null));
  const schema = z.strictObject({
    version: exactVersion.default(cli.version),
    api_base: z.string().optional(),
    engine_kind: z.enum(['chat', 'vllm', 'sglang']).default('chat'),
    capture: laxBoolean.default(true),
    ...cli.options,
  });
  const parsed = schema.safeParse(given);
  const problems = parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) =>
        ['agent.kwargs', ...path].map(String).join('.').concat(`: ${message}`),
      );
  const owned = cli.ownedVariables.filter((name) => name in env).sort();
  for (const name of owned)
    problems.push(`agent.env.${name}: the address and the key of the model are not the agent's`);
  const refusal = cli.refusal?.(hostVariables) ?? null;
  if (refusal !== null) problems.push(refusal);
  if (!parsed.success || problems.length > 0) throw invalid(cli, problems);
  if (modelName === null || modelName === '') throw noModel(cli);
  const {
    version,
    api_base: apiBase,
    engine_kind: engineKind,
    capture: isCaptured,
    ...options
  } = parsed.data as CliOptions & {
    readonly version: string;
    readonly api_base?: string;
    readonly engine_kind: RouteUpstream['engineKind'];
    readonly capture: boolean;
  };
  return {
    version,
    apiBase: apiBase ?? null,
    upstream: { engineKind, isCaptured },
    modelName: modelName.slice(modelName.indexOf('/') + 1),
    options,
  };
}

function invalid({ name }: Cli, problems: readonly string[]): RolloutError {
  return new RolloutError('CONFIG_INVALID', `agent ${name}: ${problems.join('; ')}`, {
    phase: 'config',
    field: 'agent',
    remedy: `See what ${name} takes: docs/installed-agents.md.`,
  });
}

function noModel({ name }: Cli): RolloutError {
  return new RolloutError('MODEL_UNSPECIFIED', `agent ${name} needs a model`, {
    phase: 'config',
    field: 'agent.model_name',
    remedy: 'Name one: -m PROVIDER/NAME.',
  });
}
