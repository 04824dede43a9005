import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { processorMs } from '../processor-time.ts';
import type { LoadResult, LoadTask } from './load.ts';

/** So long without a tick of processor time is idle: timers of a server that waits take less. */
const quietMs = 250;
const mostLooks = 40;

const root = path.resolve(import.meta.dirname, '../..');

/** A child that says where it listens in its first line, as JSON with `url`. */
export class ListeningProcess implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** `before`: words in front of the program. */
  static async start(
    argv: readonly string[],
    options: { readonly before?: readonly string[] } = {},
  ): Promise<ListeningProcess> {
    const { before = [] } = options;
    const [program = '', ...words] = [...before, process.execPath, ...argv];
    const child = spawn(program, words, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout });
    const [line] = (await Promise.race([
      once(lines, 'line'),
      once(child, 'exit').then(() => {
        throw new Error(`${argv.join(' ')} ended before it listened`);
      }),
    ])) as [string];
    return new ListeningProcess(child, (JSON.parse(line) as { url: string }).url);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves when it does nothing any more: what it does at its start beside listening is over. Waits no longer than some seconds. */
  async idle(): Promise<void> {
    let before = -1;
    for (let look = 1; look <= mostLooks; look += 1) {
      const now = processorMs(this.pid);
      if (now === before) return;
      before = now;
      await setTimeout(quietMs);
    }
  }

  /** A file of this folder. */
  static part(name: string, ...argv: readonly string[]): Promise<ListeningProcess> {
    return ListeningProcess.start([path.join(import.meta.dirname, `${name}.ts`), ...argv]);
  }

  /** `slipway serve` with the null backend, on a data folder of its own. */
  static server(dataDir: string, ...flags: readonly string[]): Promise<ListeningProcess> {
    return ListeningProcess.start([
      ...[path.join(root, 'bin/slipway.js'), 'serve', '--json', '--backend', 'null'],
      ...['--data-dir', dataDir, '--port', '0', '--data-port', '0', ...flags],
    ]);
  }

  /** One number of its Prometheus page. */
  async metric(name: string): Promise<number> {
    const page = await (await fetch(`${this.url}/metrics`)).text();
    const line = page.split('\n').find((each) => each.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1) ?? Number.NaN);
  }

  /** Of the window that ends now. */
  async lagP99Ms(): Promise<number> {
    return 1_000 * (await this.metric('slipway_event_loop_lag_seconds{quantile="p99"}'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    // What is measured is over: nothing of it is worth an orderly end.
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** Runs a load in a process of its own. */
export function load(task: LoadTask): Promise<LoadResult> {
  return runPart<LoadResult>(path.join(import.meta.dirname, 'load.ts'), task);
}

/** Runs a file that takes a JSON document as its argument and prints one. */
export async function runPart<Result>(
  file: string,
  task: object,
  options: { readonly before?: readonly string[] } = {},
): Promise<Result> {
  const { before = [] } = options;
  const words: readonly string[] = [...before, process.execPath, file, JSON.stringify(task)];
  const [program = '', ...argv] = words;
  const child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
  await once(child, 'close');
  return JSON.parse(text) as Result;
}
