import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { boundary, RolloutError } from '../core/errors.ts';
import { environmentContentHash } from './environment-content-hash.ts';
import { errnoOf, isFile } from './file-presence.ts';

/** How the image of a sandbox comes to be; fits the environment port's image source. */
export type EnvironmentDefinition =
  | { readonly kind: 'prebuilt'; readonly reference: string }
  | { readonly kind: 'dockerfile'; readonly contextDir: string; readonly contextHash: string }
  | {
      readonly kind: 'compose';
      readonly contextDir: string;
      readonly contextHash: string;
      readonly composeFiles: readonly string[];
      readonly mainImage: string | null;
    };

export interface ResolvedDefinition {
  readonly image: EnvironmentDefinition;
  /** Folder whose contents go into the sandbox's working folder after start; null = none. */
  readonly uploadDir: string | null;
}

export interface DefinitionOptions {
  /** Absolute: `environment/` of the task, or the tests folder of a separate verifier. Need not exist for a prebuilt image. */
  readonly contextDir: string;
  readonly dockerImage: string | null;
  /** Build although an image is named, where there is a Dockerfile. */
  readonly forceBuild: boolean;
  /** Absolute, of the run; later ones win. */
  readonly extraComposeFiles: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Picks compose, Dockerfile or prebuilt image: a named image wins over a Dockerfile unless the build is forced; a compose file
 * makes it compose. TASK_ENVIRONMENT_UNDEFINED when there is none of them, TASK_FILE_MISSING when the context cannot be read.
 */
export function resolveEnvironmentDefinition(
  options: DefinitionOptions,
): Promise<ResolvedDefinition> {
  const what = options.contextDir;
  const at = { code: 'TASK_FILE_MISSING', phase: 'environment', what } as const;
  return boundary(at, () => resolveDefinition(options));
}

async function resolveDefinition(options: DefinitionOptions): Promise<ResolvedDefinition> {
  const { contextDir, dockerImage, forceBuild, extraComposeFiles } = options;
  const hasDockerfile = await isFile(path.join(contextDir, 'Dockerfile'));
  const ownCompose = path.join(contextDir, 'docker-compose.yaml');
  const hasCompose = await isFile(ownCompose);
  const prebuilt = forceBuild && hasDockerfile ? null : dockerImage;
  const composeFiles = [...(hasCompose ? [ownCompose] : []), ...extraComposeFiles];
  const isBare = !hasDockerfile && !hasCompose && (await holdsAnything(contextDir));
  const uploadDir = dockerImage !== null && isBare ? contextDir : null;
  if (composeFiles.length > 0) {
    const contextHash = await contextHashOf(options);
    const image = { kind: 'compose', contextDir, contextHash, composeFiles } as const;
    return { image: { ...image, mainImage: prebuilt }, uploadDir };
  }
  if (prebuilt !== null) return { image: { kind: 'prebuilt', reference: prebuilt }, uploadDir };
  if (!hasDockerfile) throw undefinedEnvironment(contextDir);
  const contextHash = await contextHashOf(options);
  return { image: { kind: 'dockerfile', contextDir, contextHash }, uploadDir: null };
}

function contextHashOf({ contextDir, dockerImage, signal }: DefinitionOptions): Promise<string> {
  return environmentContentHash(contextDir, { fallback: dockerImage, signal });
}

/** A `.gitkeep` only keeps an empty folder in git. */
async function holdsAnything(dir: string): Promise<boolean> {
  try {
    return (await readdir(dir)).some((name) => name !== '.gitkeep');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

function undefinedEnvironment(contextDir: string): RolloutError {
  const folder = path.basename(contextDir);
  return new RolloutError(
    'TASK_ENVIRONMENT_UNDEFINED',
    `${folder}/ has neither a Dockerfile nor a docker-compose.yaml, and no docker_image is set`,
    {
      phase: 'environment',
      field: 'environment.docker_image',
      remedy: `Add ${folder}/Dockerfile, or set docker_image in task.toml.`,
    },
  );
}
