/**
 * A folder of image archives (as `docker save` writes them, or OCI archives) that stand in for base images where no registry
 * answers. An archive is found by the tags that it carries itself, not by its file name.
 */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { TarIndex } from './tar-index.ts';

/**
 * The full spelling of an image reference: registry, repository, and tag or digest. `debian` →
 * `docker.io/library/debian:latest`. Digests win over tags, as everywhere.
 */
export function fullImageReference(reference: string): string {
  const [beforeDigest = '', digest] = reference.trim().split('@', 2);
  const slash = beforeDigest.indexOf('/');
  const first = slash === -1 ? '' : beforeDigest.slice(0, slash);
  const isRegistry = /[.:]/.test(first) || first === 'localhost';
  const registry = isRegistry ? first : 'docker.io';
  const rest = isRegistry ? beforeDigest.slice(slash + 1) : beforeDigest;
  const colon = rest.lastIndexOf(':');
  const repository = colon === -1 ? rest : rest.slice(0, colon);
  const tag = colon === -1 ? 'latest' : rest.slice(colon + 1);
  const name =
    registry === 'docker.io' && !repository.includes('/') ? `library/${repository}` : repository;
  return digest === undefined ? `${registry}/${name}:${tag}` : `${registry}/${name}@${digest}`;
}

interface KnownArchive {
  readonly stamp: string;
  readonly tags: readonly string[];
}

export class ImageArchives {
  readonly #dir: string | null;
  readonly #known = new Map<string, KnownArchive>();

  /** @param dir Absolute folder; null or a missing folder holds nothing. */
  constructor(dir: string | null) {
    this.#dir = dir;
  }

  /** The archive that carries this image, as an absolute path; null when none does. Files that are no archives are passed over. */
  async find(reference: string): Promise<string | null> {
    if (this.#dir === null) return null;
    const wanted = fullImageReference(reference);
    for (const name of await names(this.#dir)) {
      if (!name.endsWith('.tar')) continue;
      const file = path.join(this.#dir, name);
      if ((await this.#tags(file)).includes(wanted)) return file;
    }
    return null;
  }

  async #tags(file: string): Promise<readonly string[]> {
    const stats = await stat(file).catch(() => null);
    if (stats?.isFile() !== true) return [];
    const stamp = `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
    const known = this.#known.get(file);
    if (known?.stamp === stamp) return known.tags;
    const tags = await tagsOfArchive(file).catch(() => []);
    this.#known.set(file, { stamp, tags });
    return tags;
  }
}

/** The tags in an image archive, in full spelling. Rejects when the file is not an image archive. */
export async function tagsOfArchive(file: string): Promise<readonly string[]> {
  const index = await TarIndex.read(file);
  const docker = index.member('manifest.json');
  const oci = index.member('index.json');
  const tags: string[] = [];
  if (docker !== null) {
    const entries = (await json(index, docker)) as { RepoTags?: string[] | null }[];
    tags.push(...entries.flatMap((entry) => entry.RepoTags ?? []));
  }
  if (oci !== null) {
    const { manifests = [] } = (await json(index, oci)) as {
      manifests?: { annotations?: Record<string, string> }[];
    };
    for (const { annotations = {} } of manifests) {
      const name =
        annotations['io.containerd.image.name'] ?? annotations['org.opencontainers.image.ref.name'];
      // A bare tag (`latest`) says nothing about the repository.
      if (name !== undefined && /[:/@]/.test(name)) tags.push(name);
    }
  }
  if (docker === null && oci === null) throw new Error('the archive holds no image');
  return [...new Set(tags.map(fullImageReference))];
}

async function json(
  index: TarIndex,
  member: NonNullable<ReturnType<TarIndex['member']>>,
): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of index.stream(member)) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

async function names(dir: string): Promise<readonly string[]> {
  try {
    return (await readdir(dir)).sort();
  } catch {
    return []; // no folder, no archives
  }
}
