import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { GitRepository } from './git-repository.ts';

/** git's own server for one repository: `--repo` takes no folders of this machine. */
export class GitDaemon implements AsyncDisposable {
  readonly url: string;
  readonly #child;

  private constructor(url: string, child: ReturnType<typeof spawn>) {
    this.url = url;
    this.#child = child;
  }

  static async serve(repository: GitRepository): Promise<GitDaemon> {
    const port = await freePort();
    const base = dirname(repository.dir);
    const child = spawn(
      'git',
      [
        'daemon',
        '--export-all',
        '--listen=127.0.0.1',
        `--port=${port}`,
        `--base-path=${base}`,
        repository.dir,
      ],
      { stdio: 'ignore', detached: true },
    );
    const daemon = new GitDaemon(`git://127.0.0.1:${port}/${basename(repository.dir)}`, child);
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const isUp = await repository.git('ls-remote', daemon.url).then(
        () => true,
        () => false,
      );
      if (isUp) return daemon;
      await delay(25);
    }
    return assert.fail('git daemon did not start');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    process.kill(-this.#child.pid!, 'SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
