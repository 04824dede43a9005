/**
 * The Python SDK `osmosis-ai` as a controller: its HTTP driver, callback store and listener in a container on the host's network. `npm run setup -- tests`
 * brings both into the cache.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import {
  osmosisPeerDir,
  publicPythonImage,
  pythonImage,
  pythonRootArchive,
} from '../../scripts/setup/osmosis-peer.js';
import { lowerId } from '../../src/core/ids.ts';

const execute = promisify(execFile);
const program = path.join(import.meta.dirname, 'osmosis-peer.py');

export interface PeerRollout {
  readonly rollout_id: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly label?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly agent_timeout_sec?: number;
  readonly grader_timeout_sec?: number;
  readonly extra_fields?: Readonly<Record<string, unknown>>;
}

export interface PeerCommand {
  readonly server: string;
  readonly rollouts: readonly PeerRollout[];
  readonly callback_timeout_sec?: number;
  /** Where callbacks are sent instead of the listener itself: a proxy before it. */
  readonly callback_base?: string;
  readonly acknowledgment?: Readonly<Record<string, unknown>>;
  /** So many commits fail first. */
  readonly fail_commits?: number;
  /** How long the listener stays after the last outcome. */
  readonly linger_sec?: number;
}

export interface PeerOutcome {
  readonly rollout_id: string;
  readonly status?: string;
  readonly error?: string | null;
  readonly sample?: Readonly<Record<string, unknown>> | null;
  readonly raised?: string;
}

export interface PeerAnswer {
  readonly outcomes: readonly PeerOutcome[];
  /** What its store committed, in order. */
  readonly commits: readonly {
    readonly rollout_id: string;
    readonly source: string;
    readonly completion: Readonly<Record<string, unknown>> | null;
    readonly grader: Readonly<Record<string, unknown>> | null;
  }[];
  /** What the server answered to it, in order. */
  readonly answers: readonly {
    readonly path: string;
    readonly status: number;
    readonly retry_after: string | null;
    readonly body: unknown;
  }[];
  /** Lines that it logged as warnings or worse: conflicts among them. */
  readonly warnings: readonly string[];
}

export class OsmosisPeer implements AsyncDisposable {
  /** Of the package. */
  readonly version: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #name: string;
  readonly #said: () => string;

  private constructor(
    child: ChildProcess,
    started: {
      readonly lines: AsyncIterator<string>;
      readonly name: string;
      readonly version: string;
      readonly said: () => string;
    },
  ) {
    this.#child = child;
    this.#lines = started.lines;
    this.#name = started.name;
    this.version = started.version;
    this.#said = started.said;
  }

  static async start(): Promise<OsmosisPeer> {
    assert.ok(
      existsSync(osmosisPeerDir()),
      'no controller to be driven by: npm run setup -- tests',
    );
    const image = await findImage();
    const name = `slipway-osmosis-peer-${lowerId(8)}`;
    const child = spawn(
      'docker',
      [
        ...['run', '--rm', '--interactive', '--init', '--network', 'host', '--name', name],
        ...['--volume', `${osmosisPeerDir()}:/packages:ro`, '--volume', `${program}:/peer.py:ro`],
        ...['--env', 'PYTHONPATH=/packages', '--env', 'PYTHONDONTWRITEBYTECODE=1'],
        ...[image, 'python3', '-u', '/peer.py'],
      ],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
    // Tracebacks of failures that a test asked for are of no interest to who reads its output.
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const first = await lines.next();
    assert.ok(first.done !== true, `the container with the controller did not start: ${said}`);
    const { version } = JSON.parse(first.value) as { readonly version: string };
    return new OsmosisPeer(child, { lines, name, version, said: () => said });
  }

  /** `onListening` gets the address of the peer's listener before the first rollout is submitted. */
  async run(
    command: PeerCommand,
    onListening: (address: string) => void = () => undefined,
  ): Promise<PeerAnswer> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    const { listener } = (await this.#read()) as { readonly listener: string };
    onListening(listener);
    return (await this.#read()) as PeerAnswer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    const force = setTimeout(() => void removeContainer(this.#name), 10_000);
    if (this.#child.exitCode === null) await once(this.#child, 'close');
    clearTimeout(force);
  }

  async #read(): Promise<unknown> {
    const line = await this.#lines.next();
    assert.ok(line.done !== true, `the controller has ended: ${this.#said()}`);
    return JSON.parse(line.value);
  }
}

async function findImage(): Promise<string> {
  for (const image of [pythonImage, publicPythonImage]) {
    const found = await execute('docker', ['image', 'inspect', image]).catch(() => null);
    if (found !== null) return image;
  }
  await execute('docker', ['import', pythonRootArchive(), pythonImage]);
  return pythonImage;
}

async function removeContainer(name: string): Promise<void> {
  await execute('docker', ['rm', '--force', name]).catch(() => undefined);
}
