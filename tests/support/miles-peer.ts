/** The Python package `miles-rl` in a process that lives as long as its owner wants. `npm run setup -- tests` installs it. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { interpreterFile, milesPeerDir } from '../../scripts/setup/miles-peer.js';
import { repositoryDir } from './slipway-cli.ts';

type Fields = Readonly<Record<string, unknown>>;

interface PeerAnswer {
  readonly name: number;
  readonly result?: unknown;
  readonly error?: string;
  readonly message?: string;
}

export class MilesPeer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: PeerAnswer) => void>();
  readonly #exit: Promise<unknown>;
  #orders = 0;

  /** `variables` as the trainer has them: AGENT_SERVER_URL, HARBOR_ADMIN_SECRET. */
  constructor(variables: Readonly<Record<string, string>>) {
    const interpreter = path.join(milesPeerDir(), interpreterFile);
    assert.ok(existsSync(interpreter), 'no client of trainers: npm run setup -- tests');
    const script = path.join(import.meta.dirname, 'miles-peer.py');
    const folders = [milesPeerDir(), path.join(repositoryDir, 'python')];
    this.#child = spawn(readFileSync(interpreter, 'utf8').trim(), ['-B', script, ...folders], {
      env: { PATH: process.env['PATH'], PYTHONIOENCODING: 'utf-8', ...variables },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#exit = once(this.#child, 'exit').then(() => {
      for (const [name, tell] of this.#waiting)
        tell({ name, error: 'Ended', message: 'the Python process has ended' });
    });
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      const answer = JSON.parse(line) as PeerAnswer;
      this.#waiting.get(answer.name)?.(answer);
      this.#waiting.delete(answer.name);
    });
  }

  /** What the package's function gave; what it raised is an error. */
  async call<T = Fields>(op: string, order: Fields): Promise<T> {
    const name = (this.#orders += 1);
    const answered = new Promise<PeerAnswer>((resolve) => this.#waiting.set(name, resolve));
    this.#child.stdin?.write(`${JSON.stringify({ op, name, ...order })}\n`);
    const { result, error, message } = await answered;
    if (error !== undefined) throw new Error(`${error}: ${message}`);
    return result as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }
}
