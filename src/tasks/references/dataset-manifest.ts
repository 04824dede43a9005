import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { parse } from 'smol-toml';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { datasetManifestSchema, type DatasetManifest } from '../../wire/harbor/registry.ts';

/** Reads a dataset.toml. Throws DATASET_NOT_FOUND when it is not there and CONFIG_INVALID with every wrong field. */
export async function readDatasetManifest(file: string): Promise<DatasetManifest> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new RolloutError('DATASET_NOT_FOUND', `${file} cannot be read`, {
      phase: 'resolve',
      cause: error,
    });
  });
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    throw manifestInvalid(file, messageOf(error), error);
  }
  const manifest = datasetManifestSchema.safeParse(document);
  if (manifest.success) return manifest.data;
  const problems = manifest.error.issues.map(
    ({ path, message }) => `${path.join('.')}: ${message}`,
  );
  throw manifestInvalid(file, problems.join('; '), manifest.error);
}

interface DatasetParts {
  readonly tasks: readonly { readonly digest: string }[];
  readonly files: readonly { readonly path: string; readonly digest: string }[];
}

/**
 * The content hash of a dataset package, `sha256:<hex>`: SHA-256 over the sorted digests of its tasks joined by commas, and when
 * it has files, `;` and their sorted `path:digest` joined by commas. Duplicates count.
 */
export function datasetDigest({ tasks, files }: DatasetParts): string {
  const taskPart = tasks
    .map(({ digest }) => digest)
    .sort()
    .join(',');
  const filePart = files
    .map(({ path, digest }) => `${path}:${digest}`)
    .sort()
    .join(',');
  const text = files.length === 0 ? taskPart : `${taskPart};${filePart}`;
  return `sha256:${createHash('sha256').update(text, 'utf8').digest('hex')}`;
}

function manifestInvalid(file: string, problems: string, cause: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', `${file}: ${problems}`, {
    phase: 'resolve',
    field: 'dataset.toml',
    cause,
  });
}
