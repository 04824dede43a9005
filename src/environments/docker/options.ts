import path from 'node:path';
import { z } from 'zod';
import { systemClock, type Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import { silentLogger, type Logger } from '../../core/logger.ts';
import type { ResolveName } from '../shared/egress-proxy.ts';

const absolutePath = z
  .string()
  .refine((value) => path.isAbsolute(value), 'must be an absolute path');
const ipv4Pool = z
  .string()
  .regex(/^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/, 'must be an IPv4 range like 10.213.0.0/16');

const schema = z.strictObject({
  host: z.string().default('unix:///var/run/docker.sock'),
  certPath: absolutePath.nullable().default(null),
  imageArchivesDir: absolutePath.nullable().default(null),
  extraCaBundle: absolutePath.nullable().default(null),
  platform: z.string().nullable().default(null),
  pullTimeoutMs: z.number().int().positive().default(900_000),
  buildTimeoutMs: z.number().int().positive().default(3_600_000),
  networkPool: ipv4Pool.default('10.213.0.0/16'),
  composeCommand: z.array(z.string()).min(1).nullable().default(null),
  dockerConfigDir: absolutePath.nullable().default(null),
});

/** What a user sets; see {@link CompiledDockerOptions} for the meaning of each. */
export type DockerOptions = z.input<typeof schema>;

export interface CompiledDockerOptions {
  /** As in `DOCKER_HOST`: `unix:///path` or `tcp://host:port`; podman's service socket too. */
  readonly host: string;
  /** Folder with `ca.pem`, `cert.pem` and `key.pem` for TLS over tcp; null = plain. */
  readonly certPath: string | null;
  /** Folder of archives that stand in for base images where no registry answers; null = none. */
  readonly imageArchivesDir: string | null;
  /** PEM file brought into builds, and into sandboxes whose spec names none; null = none. */
  readonly extraCaBundle: string | null;
  /** `linux/amd64` and the like, for pulls and builds; null = the daemon's own. */
  readonly platform: string | null;
  readonly pullTimeoutMs: number;
  readonly buildTimeoutMs: number;
  /** IPv4 range from which the small networks of sandboxes are cut. */
  readonly networkPool: string;
  /** The compose CLI as words; null = look for it (plugin folders, then `docker-compose` on PATH). */
  readonly composeCommand: readonly string[] | null;
  /** As in `DOCKER_CONFIG`: where `cli-plugins/` and registry logins are; null = `~/.docker`. */
  readonly dockerConfigDir: string | null;
}

/** CONFIG_INVALID lists every problem. */
export function compileDockerOptions(options: DockerOptions): CompiledDockerOptions {
  const parsed = schema.safeParse(options);
  if (parsed.success) return Object.freeze(parsed.data);
  throw new RolloutError(
    'CONFIG_INVALID',
    `options of the docker environment: ${z.prettifyError(parsed.error)}`,
    {
      phase: 'config',
      field: parsed.error.issues.map((issue) => issue.path.join('.')).join(', '),
    },
  );
}

/** Collaborators of the docker environment. */
export interface DockerPorts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names for the egress proxy; null = the system's resolver. */
  readonly resolveName: ResolveName | null;
  /** Lets allowed names resolve to addresses of this machine; for tests, whose servers live there. */
  readonly allowLocalEgress: boolean;
  /** Variables for the compose CLI (PATH, HOME, proxies); never the sandbox's. */
  readonly hostVariables: Readonly<Record<string, string | undefined>>;
}

export function dockerPorts(ports: Partial<DockerPorts>): DockerPorts {
  return {
    clock: systemClock,
    logger: silentLogger,
    resolveName: null,
    allowLocalEgress: false,
    hostVariables: {},
    ...ports,
  };
}
