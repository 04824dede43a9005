import { createHash } from 'node:crypto';

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
