import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import type { SandboxLimits } from '../../store/sandbox-ledger.ts';

const positive = z.number().positive();

const settingsSchema = z.object({
  creates_per_second: positive.max(1_000).nullish(),
  max_live_sandboxes: positive.int().nullish(),
  max_sandbox_hours: positive.nullish(),
  pool_size: z.number().int().min(0).max(1_000).nullish(),
  pool_idle_sec: positive.nullish(),
  gateway_url: z.string().nullish(),
  gateway_port: z.number().int().min(1).max(65_535).nullish(),
});

/** Options of every environment, whoever provides it: they stand between its own ones. */
export interface ProviderSettings {
  readonly limits: SandboxLimits;
  /** Sandboxes that are kept ready; 0 = no pool. */
  readonly poolSize: number;
  /** A sandbox that nobody took is removed after this. */
  readonly poolIdleMs: number;
  /** Address of the gateway as remote sandboxes reach it, unchecked; null = none. */
  readonly gatewayUrl: string | null;
  /** Of the loopback, where the gateway of a run listens for what comes by that address. */
  readonly gatewayPort: number;
}

export interface SplitOptions {
  readonly settings: ProviderSettings;
  /** The environment's own options. */
  readonly own: Readonly<Record<string, unknown>>;
}

const defaultPoolIdleSec = 300;
const defaultGatewayPort = 8001;

/** Takes the options of all environments out of `kwargs`. CONFIG_INVALID names each that makes no sense. */
export function splitOptions(kwargs: Readonly<Record<string, unknown>>): SplitOptions {
  const own = { ...kwargs };
  const given: Record<string, unknown> = {};
  for (const key of Object.keys(settingsSchema.shape)) {
    if (key in own) given[key] = own[key];
    Reflect.deleteProperty(own, key);
  }
  const result = settingsSchema.safeParse(given);
  if (!result.success) {
    const [issue] = result.error.issues;
    throw new RolloutError('CONFIG_INVALID', issue?.message ?? 'not valid', {
      phase: 'config',
      field: `environment.kwargs.${issue?.path.join('.') ?? ''}`,
      remedy: 'Look into docs/providers.md for what it takes.',
    });
  }
  const { data } = result;
  return {
    own,
    settings: {
      limits: {
        createsPerSecond: data.creates_per_second ?? null,
        maxLive: data.max_live_sandboxes ?? null,
        maxHours: data.max_sandbox_hours ?? null,
      },
      poolSize: data.pool_size ?? 0,
      poolIdleMs: (data.pool_idle_sec ?? defaultPoolIdleSec) * 1000,
      gatewayUrl: data.gateway_url ?? null,
      gatewayPort: data.gateway_port ?? defaultGatewayPort,
    },
  };
}
