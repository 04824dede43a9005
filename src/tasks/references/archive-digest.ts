import { createHash } from 'node:crypto';
import type { FileDigests } from './unpack-archive.ts';

const rootFiles = new Set(['task.toml', 'instruction.md', 'README.md', 'trajectory.json']);
const folders = new Set(['environment', 'tests', 'solution', 'steps']);

/**
 * Harbor's content hash of a package whose archive holds exactly what its author's ignore rules let through, so that nothing
 * is left to filter: SHA-256 over `path NUL sha256 LF` in the order of the paths. `sha256:<hex>`.
 */
export function archiveDigest(files: FileDigests): string {
  const counted = [...files.keys()]
    .filter((path) => rootFiles.has(path) || folders.has(path.slice(0, path.indexOf('/'))))
    .map((path) => ({ path, order: Buffer.from(path, 'utf8') }))
    .sort((one, other) => Buffer.compare(one.order, other.order));
  const hash = createHash('sha256');
  for (const { path } of counted) hash.update(`${path}\0${files.get(path) ?? ''}\n`);
  return `sha256:${hash.digest('hex')}`;
}
