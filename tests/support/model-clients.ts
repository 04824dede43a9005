/** The Python packages `openai` and `anthropic` in a process that lives as long as its owner wants. `npm run setup -- tests` installs them. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { interpreterFile, modelClientsDir } from '../../scripts/setup/model-clients.js';

export interface ClientRequest {
  readonly dialect: 'chat' | 'responses' | 'messages';
  /** Without `/v1`. */
  readonly url: string;
  readonly key: string;
  readonly stream: boolean;
  readonly params: Readonly<Record<string, unknown>>;
  /** How often the package may try again; default: never. */
  readonly retries?: number;
}

export interface ClientAnswer {
  /** As the package's own classes have it. */
  readonly result: Readonly<Record<string, unknown>> | null;
  /** Types of a stream's events, those that the package makes itself included. */
  readonly events: readonly string[];
  /** The last event of a stream of `responses`: its helper gives no response that was not completed. */
  readonly last: Readonly<Record<string, unknown>> | null;
  readonly error: {
    readonly type: string;
    readonly status: number | null;
    readonly code: string | null;
    readonly message: string;
  } | null;
}

const program = path.join(import.meta.dirname, 'model-clients.py');

export class ModelClients implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #lines: Interface;

  private constructor(child: ChildProcess, lines: Interface) {
    this.#child = child;
    this.#lines = lines;
    this.#answers = lines[Symbol.asyncIterator]();
  }

  static async start(): Promise<ModelClients> {
    const interpreter = path.join(modelClientsDir(), interpreterFile);
    assert.ok(existsSync(interpreter), 'no clients to drive the gateway: npm run setup -- tests');
    const child = spawn(
      readFileSync(interpreter, 'utf8').trim(),
      ['-u', program, modelClientsDir()],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8' },
      },
    );
    const clients = new ModelClients(child, createInterface({ input: child.stdout }));
    await clients.#read();
    return clients;
  }

  async ask(request: ClientRequest): Promise<ClientAnswer> {
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
    return (await this.#read()) as ClientAnswer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'close');
    this.#lines.close();
  }

  async #read(): Promise<unknown> {
    const line = await this.#answers.next();
    assert.ok(line.done !== true, 'the Python process has ended');
    return JSON.parse(line.value);
  }
}
