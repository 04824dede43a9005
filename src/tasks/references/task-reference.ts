/** A task reference as a domain value. Made from the `task` entry of a configuration, once, at the edge. */
import { posix, resolve } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { parseGitUrl, type GitRemote } from './git-url.ts';
import { parsePackageReference, type PackageReference } from './package-reference.ts';

interface Common {
  /** As it is filtered, shown and used for trial names. */
  readonly name: string;
  /** Name of the dataset it came from. */
  readonly source: string | null;
  /** Fetch again even when the cache holds it. */
  readonly overwrite: boolean;
  /** Root of the download in place of the cache. */
  readonly downloadDir: string | null;
  readonly entry: TaskEntry;
}

export interface LocalTask extends Common {
  readonly kind: 'local';
  /** Absolute. */
  readonly dir: string;
}

export interface GitTask extends Common {
  readonly kind: 'git';
  readonly remote: GitRemote;
  /** Branch, tag or full hash; null = the default branch. */
  readonly commit: string | null;
  /** POSIX path inside the repository; `.` = its root. */
  readonly path: string;
}

export interface PackageTask extends Common {
  readonly kind: 'package';
  readonly package: PackageReference;
}

export type TaskReference = LocalTask | GitTask | PackageTask;

/** Throws REFERENCE_INVALID; its message never holds a URL. `baseDir` is what relative paths are relative to. */
export function readTaskReference(entry: TaskEntry, baseDir: string): TaskReference {
  const common = {
    source: entry.source,
    overwrite: entry.overwrite,
    downloadDir: entry.download_dir === null ? null : resolve(baseDir, entry.download_dir),
    entry,
  };
  if (entry.name !== null) {
    const reference = parsePackageReference(
      entry.ref === null ? entry.name : `${entry.name}@${entry.ref}`,
    );
    return {
      ...common,
      kind: 'package',
      name: `${reference.org}/${reference.name}`,
      package: reference,
    };
  }
  if (entry.path === null) throw invalid('path', 'a task needs a path or a name');
  if (entry.git_url === null) {
    const dir = resolve(baseDir, entry.path);
    return { ...common, kind: 'local', name: posix.basename(dir), dir };
  }
  const remote = parseGitUrl(entry.git_url, 'git_url');
  const path = repositoryPath(entry.path);
  return {
    ...common,
    kind: 'git',
    name: path === '.' ? remote.repositoryName : posix.basename(path),
    remote,
    commit: entry.git_commit_id === null ? null : gitRef(entry.git_commit_id, 'git_commit_id'),
    path,
  };
}

/** A path inside a repository, normalised; refuses what leaves it. */
export function repositoryPath(text: string): string {
  const path = posix.normalize(text).replace(/\/+$/, '') || '.';

  if (path.startsWith('/') || path === '..' || path.startsWith('../') || /[\0-\x1f]/.test(text))
    throw invalid('path', 'a path in a repository is relative and stays inside it');
  return path;
}

const fullHash = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i;

/** Whether `ref` names one commit for ever: a full SHA-1 or SHA-256 hash. */
export function isFullHash(ref: string): boolean {
  return fullHash.test(ref);
}

/** A branch, tag or hash that git cannot read as an option or a pattern. Full hashes come back in lower case. */
export function gitRef(text: string, field: string): string {
  if (text === '' || text.startsWith('-') || text.includes('..') || /[\0- ~^:?*[\\\x7f]/.test(text))
    throw invalid(field, 'not the name of a branch, a tag or a commit');
  return isFullHash(text) ? text.toLowerCase() : text;
}

export function invalid(field: string, message: string, remedy?: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', message, {
    phase: 'resolve',
    field,
    ...(remedy === undefined ? {} : { remedy }),
  });
}
