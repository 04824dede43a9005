import { mkdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import type { LockPort } from '../../core/lock.ts';
import { CacheEntries, hasEntry } from './cache-entries.ts';
import type { Git } from './git.ts';
import { GitClone } from './git-clone.ts';
import { resolveCommit } from './git-commits.ts';
import { publicGitUrl } from './git-url.ts';
import { parseRepositorySource, type RepositorySource } from './repository-source.ts';
import { invalid, isFullHash } from './task-reference.ts';

export interface SkillSourcesOptions {
  /** Root of all caches. */
  readonly cacheDir: string;
  /** What relative paths are relative to. */
  readonly baseDir: string;
  readonly locks: LockPort;
  readonly git: Git;
}

/** A folder with a SKILL.md, or of such folders. */
export interface SkillFolder {
  /** Absolute; in the cache it is never written to. Its last part names a single skill. */
  readonly dir: string;
  /** null for folders of this machine. Without credentials. */
  readonly gitUrl: string | null;
  readonly gitCommit: string | null;
  /** Each names the source, never an address. */
  readonly warnings: readonly string[];
}

const defaultFolder = 'skills';

/** Follows entries of `agent.skills`: folders of this machine, and repositories as `org/name[@ref]` or by address. */
export class SkillSources {
  readonly #options: SkillSourcesOptions;
  readonly #entries: CacheEntries;

  constructor(options: SkillSourcesOptions) {
    this.#options = options;
    this.#entries = new CacheEntries(options.locks);
  }

  /**
   * An existing path, and what begins like one (`.`, `/`, `~`), is local and used in place. Throws REFERENCE_INVALID, GIT_FAILED,
   * ARCHIVE_UNSAFE and LOCK_TIMEOUT.
   */
  async locate(text: string, signal: AbortSignal): Promise<SkillFolder> {
    signal.throwIfAborted();
    const dir = resolve(this.#options.baseDir, text.replace(/^~(?=\/|$)/, homedir()));
    const isThere = await stat(dir).then(
      (status) => status.isDirectory(),
      () => false,
    );
    if (isThere) return { dir, gitUrl: null, gitCommit: null, warnings: [] };
    if (/^[./~]/.test(text)) throw invalid('agent.skills', `there is no folder ${dir}`);
    return this.#fetch(parseRepositorySource(text, 'agent.skills'), signal);
  }

  async #fetch(source: RepositorySource, signal: AbortSignal): Promise<SkillFolder> {
    const { git, cacheDir } = this.#options;
    const { remote, label } = source;
    const folder = source.subdir ?? defaultFolder;
    const commit = await resolveCommit(git, { remote, signal }, source.ref);
    const root = join(cacheDir, 'skills');
    // One entry per chosen folder: an outer folder is not complete because an inner one was fetched before.
    const entry = join(root, label, commit, encodeURIComponent(folder));
    const name = basename(folder);
    if (!(await hasEntry(entry)))
      await this.#entries.exclusively({ root, key: entry }, signal, async (writer) => {
        if (await hasEntry(entry)) return;
        const dir = join(await writer.scratch(), 'clone');
        const clone = await GitClone.make(git, { remote, dir, signal });
        await clone.chooseFolders([folder]);
        await clone.checkout(commit);
        if (!(await clone.hasFolder(folder)))
          throw invalid('agent.skills', `${label} holds no folder ${folder} at its commit`);
        const filled = join(await writer.scratch(), 'entry');
        await mkdir(filled);
        await clone.copyFolder(folder, join(filled, name));
        await writer.place(filled, entry);
      });
    return {
      dir: join(entry, name),
      gitUrl: publicGitUrl(remote),
      gitCommit: commit,
      warnings: unpinnedWarnings(source, commit),
    };
  }
}

function unpinnedWarnings({ label, ref }: RepositorySource, commit: string): readonly string[] {
  if (ref !== null && isFullHash(ref)) return [];
  const what = ref === null ? 'no commit is given' : `${ref} may move`;
  return [
    `skills of ${label}: ${what}, so another run may get others; these are at commit ${commit}`,
  ];
}
