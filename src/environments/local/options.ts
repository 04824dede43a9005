import path from 'node:path';
import { z } from 'zod';
import { systemClock, type Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import type { LockPort } from '../../core/lock.ts';
import { silentLogger, type Logger } from '../../core/logger.ts';
import { makeFolderSync } from '../../core/make-folder.ts';

export const localRuntimes = ['auto', 'runc', 'crun', 'unshare', 'process'] as const;
export type LocalRuntimeName = (typeof localRuntimes)[number];

const absolutePath = z
  .string()
  .refine((value) => path.isAbsolute(value), 'must be an absolute path');

const schema = z.strictObject({
  stateDir: absolutePath,
  cacheDir: absolutePath,
  imageArchivesDir: absolutePath.nullable().default(null),
  runtime: z.enum(localRuntimes).default('auto'),
  isUnsandboxedAllowed: z.boolean().default(false),
  publicNetwork: z.enum(['isolated', 'host']).default('isolated'),
  extraCaBundle: absolutePath.nullable().default(null),
  pullStartTimeoutMs: z.number().int().positive().default(15_000),
});

/** What a user sets; see {@link CompiledLocalOptions} for the meaning of each. */
export type LocalOptions = z.input<typeof schema>;

export interface CompiledLocalOptions {
  /** Sandboxes and the runtime's records; on a file system that can carry an overlay. */
  readonly stateDir: string;
  /** Images, shared by all runs of the user. */
  readonly cacheDir: string;
  /** Folder of archives that stand in for base images where no registry answers; null = none. */
  readonly imageArchivesDir: string | null;
  /** `auto`: runc, else crun, else unshare as weaker isolation, else plain processes, which run only when {@link isUnsandboxedAllowed}. */
  readonly runtime: LocalRuntimeName;
  readonly isUnsandboxedAllowed: boolean;
  /** `isolated`: a public sandbox has its own network and ports. `host`: it shares the host's. */
  readonly publicNetwork: 'isolated' | 'host';
  /** PEM file brought into builds, and into sandboxes whose spec names none; null = none. */
  readonly extraCaBundle: string | null;
  /** A pull that has not begun to copy after this long counts as "no registry answers". */
  readonly pullStartTimeoutMs: number;
}

/** CONFIG_INVALID lists every problem. */
export function compileLocalOptions(options: LocalOptions): CompiledLocalOptions {
  const parsed = schema.safeParse(options);
  if (!parsed.success)
    throw new RolloutError(
      'CONFIG_INVALID',
      `options of the local environment: ${z.prettifyError(parsed.error)}`,
      {
        phase: 'config',
        field: parsed.error.issues.map((issue) => issue.path.join('.')).join(', '),
      },
    );
  if (parsed.data.runtime === 'process' && !parsed.data.isUnsandboxedAllowed)
    throw new RolloutError('CONFIG_INVALID', 'runtime "process" runs tasks without any sandbox', {
      phase: 'config',
      field: 'runtime',
      remedy: 'Pass --allow-unsandboxed if the tasks and agents are trusted with this machine.',
    });
  return Object.freeze(parsed.data);
}

/** Collaborators of the local environment. */
export interface LocalPorts {
  readonly locks: LockPort;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function localPorts(ports: Partial<LocalPorts> & Pick<LocalPorts, 'locks'>): LocalPorts {
  return { clock: systemClock, logger: silentLogger, ...ports };
}

/** Makes a folder of ours, for its owner only. */
export function makePrivateDir(dir: string): void {
  makeFolderSync(dir, { mode: 0o700 });
}
