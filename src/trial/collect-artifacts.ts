/** Copies declared artifacts out of a sandbox. Best effort: what cannot be copied is a line of the manifest, never the end of a trial. */
import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from '../core/logger.ts';
import type { Environment, ServiceAccess } from '../environments/environment.ts';
import { artifactDestination, isOverlap } from '../tasks/artifacts.ts';
import type { Artifact } from '../tasks/task.ts';
import type { ManifestEntry } from './artifact-manifest.ts';
import { probePaths, type PathKind } from './artifact-probe.ts';
import { problemOf } from './sandboxes.ts';

/** The sandbox or one of its services. */
export type ArtifactSource = Pick<ServiceAccess, 'exec' | 'downloadFile' | 'downloadDir'>;

const pwdLimitMs = 10_000;

export class ArtifactCollection {
  readonly #dir: string;
  readonly #logger: Logger;
  /** Places below `artifacts/` that are taken; the first claimant keeps them. */
  readonly #claims: { readonly claimant: string; readonly place: string }[] = [];

  constructor(dir: string, logger: Logger) {
    this.#dir = dir;
    this.#logger = logger;
  }

  /** Copies the artifacts in order and answers their manifest lines. Rejects only when `signal` fires. */
  async collect(
    artifacts: readonly Artifact[],
    access: (service: string | null) => ArtifactSource,
    signal: AbortSignal,
  ): Promise<ManifestEntry[]> {
    const found = await this.#find(artifacts, access, signal);
    const entries: ManifestEntry[] = [];
    for (const place of found) entries.push(await this.#copy(place, signal));
    return entries;
  }

  /** One question per sandbox, however many artifacts it has. */
  async #find(
    artifacts: readonly Artifact[],
    access: (service: string | null) => ArtifactSource,
    signal: AbortSignal,
  ): Promise<readonly FoundArtifact[]> {
    const byService = Map.groupBy(artifacts, ({ service }) => service);
    const found = new Map<Artifact, FoundArtifact>();
    for (const [service, group] of byService) {
      const from = access(service);
      const folder = group.some(({ source }) => !path.posix.isAbsolute(source))
        ? await workingFolder(from, signal)
        : '/';
      const paths = group.map(({ source }) => path.posix.resolve(folder, source));
      const kinds = await probePaths(from, paths, signal);
      for (const [index, artifact] of group.entries())
        found.set(artifact, {
          artifact,
          from,
          path: paths[index] ?? artifact.source,
          kind: kinds[index] ?? 'unknown',
        });
    }
    return artifacts.flatMap((artifact) => found.get(artifact) ?? []);
  }

  async #copy(found: FoundArtifact, signal: AbortSignal): Promise<ManifestEntry> {
    const { source, service } = found.artifact;
    const place = artifactDestination(found.artifact);
    const type = typeOf(found);
    const about = { source, destination: `artifacts/${place}`, type, service };
    if (!this.#claim(found.artifact, place)) return { ...about, status: 'skipped' };
    if (found.kind === 'empty') return { ...about, status: await this.#makeEmpty(place) };
    try {
      if (found.kind === 'missing') throw new Error('there is nothing at this path');
      const target = path.join(this.#dir, ...place.split('/'));
      if (type === 'directory')
        return { ...about, status: await this.#copyDir(found, target, signal) };
      await mkdir(path.dirname(target), { recursive: true });
      await found.from.downloadFile(found.path, target, signal);
      return { ...about, status: 'ok' };
    } catch (error) {
      signal.throwIfAborted();
      this.#logger.log('warn', 'artifact not collected', { source, reason: problemOf(error) });
      return { ...about, status: 'failed' };
    }
  }

  #claim({ source, service }: Artifact, place: string): boolean {
    const claimant = `${service ?? ''}:${source}`;
    const isTaken = this.#claims.some(
      (claim) => claim.claimant !== claimant && isOverlap(claim.place, place),
    );
    if (!isTaken) this.#claims.push({ claimant, place });
    return !isTaken;
  }

  /** A separate verifier gets the folder too, so it has to exist here. */
  async #makeEmpty(place: string): Promise<'empty'> {
    await mkdir(path.join(this.#dir, ...place.split('/')), { recursive: true });
    return 'empty';
  }

  async #copyDir(
    { artifact, from, path: source }: FoundArtifact,
    target: string,
    signal: AbortSignal,
  ): Promise<'ok' | 'empty'> {
    const { skipped } = await from.downloadDir(source, target, signal, {
      exclude: artifact.exclude,
    });
    if (skipped.length > 0)
      this.#logger.log('warn', 'links and devices are not collected', { source, skipped });
    return (await readdir(target).catch(() => [])).length === 0 ? 'empty' : 'ok';
  }
}

interface FoundArtifact {
  readonly artifact: Artifact;
  readonly from: ArtifactSource;
  /** Absolute, in the sandbox. */
  readonly path: string;
  readonly kind: PathKind;
}

/** Where nobody could be asked, a path without a suffix counts as a folder. */
function typeOf({ kind, artifact }: FoundArtifact): ManifestEntry['type'] {
  if (kind === 'directory' || kind === 'empty') return 'directory';
  if (kind === 'file') return 'file';
  return path.posix.extname(artifact.source) === '' ? 'directory' : 'file';
}

async function workingFolder(from: ArtifactSource, signal: AbortSignal): Promise<string> {
  try {
    const { stdout } = await from.exec({ command: 'pwd', timeoutMs: pwdLimitMs }, signal);
    return stdout.trim() || '/';
  } catch {
    signal.throwIfAborted();
    return '/';
  }
}

export function mainOrService(environment: Environment) {
  return (service: string | null): ArtifactSource =>
    service === null ? environment : environment.service(service);
}
