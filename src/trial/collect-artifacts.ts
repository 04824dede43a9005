/** Copies declared artifacts out of a sandbox. Best effort: what cannot be copied is a line of the manifest, never the end of a trial. */
import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from '../core/logger.ts';
import type { Environment, ServiceAccess } from '../environments/environment.ts';
import { artifactDestination, isOverlap } from '../tasks/artifacts.ts';
import type { Artifact } from '../tasks/task.ts';
import type { ManifestEntry } from './artifact-manifest.ts';
import { problemOf } from './sandboxes.ts';
import { quote } from './shell-quote.ts';

/** The sandbox or one of its services. */
export type ArtifactSource = Pick<ServiceAccess, 'exec' | 'downloadFile' | 'downloadDir'>;

const probeLimitMs = 10_000;

export class ArtifactCollection {
  readonly #dir: string;
  readonly #logger: Logger;
  /** Places below `artifacts/` that are taken; the first claimant keeps them. */
  readonly #claims: { readonly source: string; readonly place: string }[] = [];

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
    const entries: ManifestEntry[] = [];
    for (const artifact of artifacts)
      entries.push(await this.#copy(artifact, access(artifact.service), signal));
    return entries;
  }

  async #copy(
    artifact: Artifact,
    from: ArtifactSource,
    signal: AbortSignal,
  ): Promise<ManifestEntry> {
    const { source, service } = artifact;
    const place = artifactDestination(artifact);
    const about = { source, destination: `artifacts/${place}`, service };
    const isTaken = this.#claims.some(
      (claim) => claim.source !== claimant(artifact) && isOverlap(claim.place, place),
    );
    if (isTaken) return { ...about, type: guessType(source), status: 'skipped' };
    this.#claims.push({ source: claimant(artifact), place });
    const isFolder = await this.#isFolder(from, source, signal);
    const type = isFolder ? 'directory' : 'file';
    try {
      const target = path.join(this.#dir, ...place.split('/'));
      if (!isFolder) {
        await mkdir(path.dirname(target), { recursive: true });
        await from.downloadFile(await this.#absolute(from, source, signal), target, signal);
        return { ...about, type, status: 'ok' };
      }
      const { skipped } = await from.downloadDir(
        await this.#absolute(from, source, signal),
        target,
        signal,
        { exclude: artifact.exclude },
      );
      if (skipped.length > 0)
        this.#logger.log('warn', 'links and devices are not collected', { source, skipped });
      return { ...about, type, status: (await isEmpty(target)) ? 'empty' : 'ok' };
    } catch (error) {
      signal.throwIfAborted();
      this.#logger.log('warn', 'artifact not collected', { source, reason: problemOf(error) });
      return { ...about, type, status: 'failed' };
    }
  }

  /** As root; where that cannot be asked, a path without a suffix counts as a folder. */
  async #isFolder(from: ArtifactSource, source: string, signal: AbortSignal): Promise<boolean> {
    try {
      const command = `test -d ${quote(source)}`;
      const { exitCode } = await from.exec(
        { command, user: 'root', timeoutMs: probeLimitMs },
        signal,
      );
      return exitCode === 0;
    } catch {
      signal.throwIfAborted();
      return guessType(source) === 'directory';
    }
  }

  /** A relative source lies in the working folder. */
  async #absolute(from: ArtifactSource, source: string, signal: AbortSignal): Promise<string> {
    if (path.posix.isAbsolute(source)) return source;
    const { stdout } = await from.exec({ command: 'pwd', timeoutMs: probeLimitMs }, signal);
    return path.posix.join(stdout.trim() || '/', source);
  }
}

function claimant({ source, service }: Artifact): string {
  return `${service ?? ''}:${source}`;
}

function guessType(source: string): ManifestEntry['type'] {
  return path.posix.extname(source) === '' ? 'directory' : 'file';
}

async function isEmpty(dir: string): Promise<boolean> {
  return (await readdir(dir).catch(() => [])).length === 0;
}

export function mainOrService(environment: Environment) {
  return (service: string | null): ArtifactSource =>
    service === null ? environment : environment.service(service);
}
