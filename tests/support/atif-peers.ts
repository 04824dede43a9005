/** Validators of ATIF that are not ours, in a Python process that lives as long as its owner wants. `npm run setup -- tests` installs them. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { atifPeersDir, interpreterFile } from '../../scripts/setup/atif-peers.js';
import { validateTrajectoryFile } from '../../src/trajectory/validate.ts';

export interface PeerVerdict {
  /** Places that the package `atif` refuses. */
  readonly atif: readonly string[];
  /** Harbor's messages. */
  readonly harbor: readonly string[];
  /** The document as Harbor writes it again, when that was asked for and it is valid. */
  readonly dump?: unknown;
}

type PeerRequest = { readonly text: string; readonly dump?: boolean } | { readonly file: string };

const program = path.join(import.meta.dirname, 'atif-peers.py');

export class AtifPeers {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #lines: Interface;

  constructor() {
    const interpreter = path.join(atifPeersDir(), interpreterFile);
    assert.ok(existsSync(interpreter), 'no validators to compare with: npm run setup -- tests');
    const python = readFileSync(interpreter, 'utf8').trim();
    const child = spawn(python, ['-u', program, atifPeersDir()], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8' },
    });
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** One verdict per request, in order. */
  async check(requests: readonly PeerRequest[]): Promise<readonly PeerVerdict[]> {
    const verdicts: PeerVerdict[] = [];
    for (const request of requests) {
      this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
      const answer = await this.#answers.next();
      assert.ok(answer.done !== true, 'the Python process has ended');
      verdicts.push(JSON.parse(answer.value) as PeerVerdict);
    }
    return verdicts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'close');
    this.#lines.close();
  }
}

/** Fails unless our validator, `atif` and Harbor's accept every one of these files. */
export async function validateWithPeers(files: readonly string[]): Promise<void> {
  await using peers = new AtifPeers();
  const verdicts = await peers.check(files.map((file) => ({ file: path.resolve(file) })));
  for (const [index, file] of files.entries()) {
    const ours = await validateTrajectoryFile(file, { checksImages: true });
    const { atif, harbor } = verdicts[index] ?? {};
    assert.deepEqual({ ours, atif, harbor }, { ours: [], atif: [], harbor: [] }, file);
  }
}
