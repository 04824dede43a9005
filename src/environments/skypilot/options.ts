import { z } from 'zod';
import { systemClock, type Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import type { LockPort } from '../../core/lock.ts';
import { silentLogger, type Logger } from '../../core/logger.ts';

/** Harbor hands an empty string on where nothing was set. */
const setOrNull = z
  .string()
  .nullable()
  .default(null)
  .transform((value) => (value === '' ? null : value));

const schema = z.strictObject({
  registry: setOrNull,
  pool: setOrNull,
  contextName: setOrNull,
  namespace: setOrNull,
  secrets: z.array(z.string().min(1)).default([]),
  platform: z.string().min(1).default('linux/amd64'),
  python: z.string().min(1).default('python3'),
  builder: z.enum(['docker', 'buildah']).nullable().default(null),
  buildTimeoutMs: z.number().int().positive().default(3_600_000),
  createTimeoutMs: z.number().int().positive().default(900_000),
  extraCaBundle: z.string().nullable().default(null),
});

/** What a user sets; see {@link CompiledSkyOptions} for the meaning of each. */
export type SkyOptions = z.input<typeof schema>;

export interface CompiledSkyOptions {
  /** Where built images are pushed to, and pulled from by the cluster: `host/path`; null = Dockerfiles cannot be built. */
  readonly registry: string | null;
  /** A warm pool, which gives image, processors and memory; null = a pod of its own for each sandbox. */
  readonly pool: string | null;
  /** Kubernetes context; null = SkyPilot's own choice. */
  readonly contextName: string | null;
  readonly namespace: string | null;
  /** Names in SkyPilot's secrets manager; each becomes the variable of that name. */
  readonly secrets: readonly string[];
  /** Of images that are built. */
  readonly platform: string;
  /** The Python that has the sandbox SDK. */
  readonly python: string;
  /** What builds Dockerfiles on this machine; null = docker where it is installed, else buildah. */
  readonly builder: 'docker' | 'buildah' | null;
  readonly buildTimeoutMs: number;
  /** For the SDK's `create`, which answers when the pod runs. */
  readonly createTimeoutMs: number;
  /** PEM file brought into sandboxes whose spec names none; null = none. */
  readonly extraCaBundle: string | null;
}

/** CONFIG_INVALID lists every problem. */
export function compileSkyOptions(options: SkyOptions): CompiledSkyOptions {
  const parsed = schema.safeParse(options);
  if (parsed.success) return Object.freeze(parsed.data);
  throw new RolloutError(
    'CONFIG_INVALID',
    `options of the skypilot environment: ${z.prettifyError(parsed.error)}`,
    {
      phase: 'config',
      field: parsed.error.issues.map((issue) => issue.path.join('.')).join(', '),
    },
  );
}

/** Collaborators of the skypilot environment. */
export interface SkyPorts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** For the SDK (`SKYPILOT_…`, HOME, PATH) and for the builder of images. */
  readonly hostVariables: Readonly<Record<string, string | undefined>>;
  /** By which processes of this machine build an image one after the other; null = each builds for itself. */
  readonly buildLocks: { readonly locks: LockPort; readonly dir: string } | null;
}

export function skyPorts(ports: Partial<SkyPorts>): SkyPorts {
  return {
    clock: systemClock,
    logger: silentLogger,
    hostVariables: {},
    buildLocks: null,
    ...ports,
  };
}
