import { z } from 'zod';
import { RolloutError } from '../../../core/errors.ts';

/** What a sandbox needs from an image's configuration. */
export interface ImageConfig {
  /** `NAME=value`, in order. */
  readonly env: readonly string[];
  readonly entrypoint: readonly string[];
  /** `name`, `uid`, `name:group` or `uid:gid`; empty = root. */
  readonly user: string;
  /** Absolute; `/` when the image names none. */
  readonly workdir: string;
  /** Digests of the uncompressed layers, lowest first. */
  readonly diffIds: readonly string[];
  readonly architecture: string;
}

const strings = z.array(z.string()).nullish();
const schema = z.object({
  architecture: z.string().default(''),
  config: z
    .object({
      Env: strings,
      Entrypoint: strings,
      User: z.string().nullish(),
      WorkingDir: z.string().nullish(),
    })
    .nullish(),
  rootfs: z.object({ diff_ids: z.array(z.string().regex(/^sha256:[0-9a-f]{64}$/)) }),
});

/** Reads the configuration blob of an OCI or Docker image. IMAGE_INVALID when it is not one. */
export function parseImageConfig(text: string): ImageConfig {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw invalid('is not JSON', error);
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) throw invalid(z.prettifyError(parsed.error), parsed.error);
  const { config, rootfs, architecture } = parsed.data;
  const workdir = config?.WorkingDir ?? '';
  return {
    env: config?.Env ?? [],
    entrypoint: config?.Entrypoint ?? [],
    user: config?.User ?? '',
    workdir: workdir === '' ? '/' : workdir.startsWith('/') ? workdir : `/${workdir}`,
    diffIds: rootfs.diff_ids,
    architecture,
  };
}

function invalid(why: string, cause: unknown): RolloutError {
  return new RolloutError('IMAGE_INVALID', `the image's configuration ${why}`, {
    phase: 'environment',
    cause,
    remedy: 'Build or save the image again.',
  });
}
