import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { FolderFiles } from './task-folder.ts';

const run = promisify(execFile);

/** A real git repository in a temporary folder that serves partial clones. Removes itself. */
export class GitRepository implements AsyncDisposable {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async make(): Promise<GitRepository> {
    const repository = new GitRepository(await mkdtemp(join(tmpdir(), 'slipway-repository-')));
    await repository.git('init', '--quiet', '--initial-branch=main');
    await repository.git('config', 'uploadpack.allowFilter', 'true');
    await repository.git('config', 'user.name', 'Test');
    await repository.git('config', 'user.email', 'test@example.org');
    await repository.git('config', 'commit.gpgsign', 'false');
    return repository;
  }

  get url(): string {
    return pathToFileURL(this.dir).href;
  }

  async git(...args: readonly string[]): Promise<string> {
    const { stdout } = await run('git', [...args], { cwd: this.dir });
    return stdout.trim();
  }

  /** Writes files and commits everything. Answers the full hash. */
  async commit(files: FolderFiles): Promise<string> {
    for (const [relative, content] of Object.entries(files)) {
      const file = join(this.dir, relative);
      await mkdir(dirname(file), { recursive: true });
      await rm(file, { force: true });
      if (typeof content === 'object' && 'linkTo' in content) await symlink(content.linkTo, file);
      else await writeFile(file, content);
    }
    await this.git('add', '--all', '--force');
    await this.git('commit', '--quiet', '--allow-empty', '-m', 'A change');
    return this.git('rev-parse', 'HEAD');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.dir, { recursive: true, force: true });
  }
}

/** The same files one folder deeper. */
export function under(folder: string, files: FolderFiles): FolderFiles {
  return Object.fromEntries(
    Object.entries(files).map(([path, content]) => [`${folder}/${path}`, content]),
  );
}
