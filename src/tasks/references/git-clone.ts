import { cp, lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import { makeFolder } from '../../core/make-folder.ts';
import type { Git, GitCommand } from './git.ts';
import type { GitRemote } from './git-url.ts';
import { refuseUnsafeTree } from './inside-links.ts';
import { isFullHash } from './task-reference.ts';

interface CloneOptions {
  readonly remote: GitRemote;
  /** Must not exist yet. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

/** A shallow clone that holds no file until folders are chosen and a commit is checked out. Hugging Face does not serve partial clones. */
export class GitClone {
  readonly dir: string;
  readonly remote: GitRemote;
  readonly #git: Git;
  readonly #signal: AbortSignal;

  private constructor(git: Git, { remote, dir, signal }: CloneOptions) {
    this.#git = git;
    this.#signal = signal;
    this.dir = dir;
    this.remote = remote;
  }

  static async make(git: Git, options: CloneOptions): Promise<GitClone> {
    const { remote, dir } = options;
    await makeFolder(dirname(dir));
    const clone = new GitClone(git, options);
    const filter = remote.hostname === 'huggingface.co' ? [] : ['--filter=blob:none'];
    await git.run(
      ['clone', '--quiet', ...filter, '--depth', '1', '--no-checkout', '--', remote.url, dir],
      { ...clone.#command(), cwd: dirname(dir) },
    );
    return clone;
  }

  /** Checkouts write only these folders (POSIX paths inside the repository; `.` = everything). */
  async chooseFolders(paths: readonly string[]): Promise<void> {
    const patterns = [...new Set(paths)].map((path) =>
      path === '.' ? '/*' : `/${path.replaceAll(/[\\*?[\]!# ]/g, '\\$&')}`,
    );
    await this.git(['sparse-checkout', 'set', '--no-cone', '--stdin'], `${patterns.join('\n')}\n`);
  }

  /** Brings the chosen folders to exactly this commit (a full hash). */
  async checkout(commit: string): Promise<void> {
    await this.fetch(commit);
    await this.git(['checkout', '--quiet', '--force', '--detach', commit, '--']);
    const head = (await this.git(['rev-parse', 'HEAD'])).trim();
    if (head === commit) return;
    throw new RolloutError('GIT_FAILED', `git checked out another commit than ${commit}`, {
      phase: 'resolve',
      field: 'git_commit_id',
      remedy: 'Give the hash of a commit, not of a tag object.',
    });
  }

  /** Fetches the commit and its folders' names unless the clone came with it. */
  async fetch(commit: string): Promise<void> {
    if (!isFullHash(commit)) throw new TypeError('a commit is fetched by its full hash');
    const tip = (await this.git(['rev-parse', '--revs-only', 'HEAD'])).trim();
    if (tip !== commit) await this.git(['fetch', '--quiet', '--depth', '1', 'origin', commit]);
  }

  /** Runs git in the clone. */
  git(args: readonly [string, ...string[]], input = ''): Promise<string> {
    return this.#git.run(args, { ...this.#command(), cwd: this.dir, input });
  }

  async hasFolder(path: string): Promise<boolean> {
    const status = await lstat(join(this.dir, path)).catch(() => null);
    return status?.isDirectory() === true;
  }

  /** Copies a checked-out folder without git's own. Throws ARCHIVE_UNSAFE when a link in it leaves it. */
  async copyFolder(path: string, to: string): Promise<void> {
    const from = join(this.dir, path);
    const own = join(this.dir, '.git');
    await refuseUnsafeTree(from, new Set(path === '.' ? ['.git'] : []));
    await cp(from, to, {
      recursive: true,
      verbatimSymlinks: true,
      preserveTimestamps: true,
      filter: (source) => source !== own,
    });
  }

  hasLfs(): Promise<boolean> {
    return this.#git.hasLfs(this.#command());
  }

  #command(): GitCommand {
    return { remote: this.remote, signal: this.#signal };
  }
}
