/** The real `slipway engine` as a process of its own, with the suite's policy and faults. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';
import { faults } from './faults.ts';

export const apiKey = 'key-of-the-suite';

export class EngineProcess implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  /** One per line: requests of the suite have ids of their own. */
  readonly #entries = new Map<string, RequestLogEntry>();

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(dialect: string): Promise<EngineProcess> {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'slipway-engine-suite-'));
    const flags = {
      dialect,
      policy: path.join(import.meta.dirname, 'policy.ts'),
      faults: JSON.stringify(faults),
      log: path.join(folder, 'log.ndjson'),
      seed: '7',
      'non-canonical': '0.75',
      // Slow enough that a test can come between two tokens.
      'token-latency': 'constant:2',
      'api-key-env': 'ENGINE_SUITE_KEY',
    };
    const child = spawn(
      process.execPath,
      [
        path.join(repositoryDir, 'bin/slipway.js'),
        'engine',
        '--json',
        ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
      ],
      {
        env: { ...process.env, SLIPWAY_STATE_DIR: folder, ENGINE_SUITE_KEY: apiKey },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const url = await new Promise<string>((resolve, reject) => {
      createInterface(child.stdout).once('line', (line) =>
        resolve((JSON.parse(line) as { url: string }).url),
      );
      child.once('close', (code) =>
        reject(new Error(`slipway engine ended with ${String(code)}: ${said}`)),
      );
    });
    return new EngineProcess(url, child, folder);
  }

  /** The entry of a request; undefined until it has ended. */
  logged(requestId: string): RequestLogEntry | undefined {
    if (!this.#entries.has(requestId)) this.#readLog();
    return this.#entries.get(requestId);
  }

  #readLog(): void {
    const lines = readFileSync(path.join(this.#folder, 'log.ndjson'), 'utf8').split('\n');
    for (const line of lines.slice(this.#entries.size, -1)) {
      const entry = JSON.parse(line) as RequestLogEntry;
      this.#entries.set(entry.request_id, entry);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#child, 'close');
    // Requests that hang on purpose would hold an orderly end.
    this.#child.kill('SIGKILL');
    await closed;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
