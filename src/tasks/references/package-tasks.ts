import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import type { TaskVersion } from '../../wire/harbor/registry.ts';
import { contentHash } from '../content-hash.ts';
import { archiveDigest } from './archive-digest.ts';
import { hasEntry, type CacheEntries, type EntryWriter } from './cache-entries.ts';
import type { PackageReference } from './package-reference.ts';
import type { RegistryClient } from './registry-client.ts';
import { unpackArchive, type UnpackLimits } from './unpack-archive.ts';

export interface FetchedPackage {
  readonly dir: string;
  /** `sha256:<hex>`. */
  readonly digest: string;
  readonly warnings: readonly string[];
}

interface PackageTasksOptions {
  readonly registry: RegistryClient;
  readonly entries: CacheEntries;
  readonly limits: UnpackLimits;
}

interface FetchOptions {
  /** Root of the cache of tasks. */
  readonly root: string;
  readonly overwrite: boolean;
  readonly signal: AbortSignal;
}

/** Fetches tasks from the package registry into folders named by their content. */
export class PackageTasks {
  readonly #registry: RegistryClient;
  readonly #entries: CacheEntries;
  readonly #limits: UnpackLimits;

  constructor({ registry, entries, limits }: PackageTasksOptions) {
    this.#registry = registry;
    this.#entries = entries;
    this.#limits = limits;
  }

  /** Throws PACKAGE_NOT_FOUND, PACKAGE_DIGEST_MISMATCH, ARCHIVE_UNSAFE and REGISTRY_UNAVAILABLE. */
  async fetch(reference: PackageReference, options: FetchOptions): Promise<FetchedPackage> {
    const { root, signal } = options;
    const label = `${reference.org}/${reference.name}`;
    const version = await this.#registry.taskVersion(reference, signal);
    const digest = version.content_hash;
    if (reference.ref.kind === 'digest' && reference.ref.text !== digest)
      throw mismatch(label, `the registry answered ${digest} for ${reference.ref.text}`);
    const dir = packageDir(root, reference, digest);
    const isWanted = async (): Promise<boolean> => options.overwrite || !(await hasEntry(dir));
    if (await isWanted())
      await this.#entries.exclusively({ root, key: `package ${dir}` }, signal, async (writer) => {
        if (await isWanted()) await this.#download(version, { dir, label, writer, signal });
      });
    return { dir, digest, warnings: yankWarnings(label, version) };
  }

  async #download(
    version: TaskVersion,
    to: { dir: string; label: string; writer: EntryWriter; signal: AbortSignal },
  ): Promise<void> {
    const filled = await this.#registry.download(
      version.archive_path,
      to.signal,
      async (chunks, signal) => {
        const dir = join(await to.writer.scratch(), 'task');
        await mkdir(dir);
        const files = await unpackArchive(chunks, { dir, limits: this.#limits, signal });
        await requireDigest(dir, archiveDigest(files), { version, label: to.label, signal });
        return dir;
      },
    );
    await to.writer.place(filled, to.dir);
    await this.#registry.recordDownload('task_version', version.id, to.signal);
  }
}

/** The archive may also hold files that its ignore rules leave out of the hash: then the folder's own rules decide. */
async function requireDigest(
  dir: string,
  digest: string,
  { version, label, signal }: { version: TaskVersion; label: string; signal: AbortSignal },
): Promise<void> {
  const promised = version.content_hash;
  if (digest === promised || (await contentHash(dir, signal)) === promised) return;
  throw mismatch(label, `${digest} was downloaded, ${promised} was promised`);
}

/** Where a package lies below the cache of tasks. */
export function packageDir(root: string, reference: PackageReference, digest: string): string {
  const { org, name } = reference;
  return join(root, 'packages', org, name, digest.slice('sha256:'.length));
}

export function yankWarnings(
  label: string,
  version: { readonly yanked_at: string | null; readonly yanked_reason: string | null },
): readonly string[] {
  if (version.yanked_at === null) return [];
  const reason = version.yanked_reason === null ? '' : `: ${version.yanked_reason}`;
  return [`${label}: this version was withdrawn by its author${reason}`];
}

function mismatch(label: string, what: string): RolloutError {
  return new RolloutError('PACKAGE_DIGEST_MISMATCH', `${label}: ${what}`, {
    phase: 'resolve',
    field: 'ref',
    remedy: 'Try again; if it stays, tell the author of the package.',
  });
}
