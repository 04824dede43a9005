/** `slipway serve` as a child process: started on free ports, ended or killed by the test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { repositoryDir } from './slipway-cli.ts';

export interface ServeProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
  readonly dataUrl: string;
  /** Rollouts of an earlier life that it took up. */
  readonly recovered: number;
  /** What it has said so far on stderr. */
  readonly errors: () => string;
  /** SIGTERM, and its exit code when it has gone. */
  stop(): Promise<number | null>;
  /** SIGKILL, and gone when it resolves. */
  kill(): Promise<void>;
}

export interface ServeProcessOptions {
  /** Journals, and the data folder unless a flag names another. */
  readonly stateDir: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly nodeArgs?: readonly string[];
  /** A program that starts the server in its own way and prints the same line; default: `slipway serve`. */
  readonly program?: readonly string[];
}

const startLimitMs = 240_000;

interface ReadyLine {
  readonly url: string;
  readonly data_url: string;
  readonly recovered: number;
}

/** Ports are any free ones unless `flags` say otherwise. Disposing ends it, by force when it does not go. */
export async function startServeProcess(
  flags: readonly string[],
  options: ServeProcessOptions,
): Promise<ServeProcess> {
  const program = options.program ?? [path.join(repositoryDir, 'bin/slipway.js'), 'serve'];
  const ports = flags.some((flag) => /^--port\b/.test(flag)) ? [] : ['--port', '0'];
  const child = spawn(
    process.execPath,
    [...(options.nodeArgs ?? []), ...program, '--json', ...ports, ...flags],
    {
      env: { ...process.env, SLIPWAY_STATE_DIR: options.stateDir, ...options.variables },
      cwd: options.cwd ?? options.stateDir,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const lines = createInterface({ input: child.stdout });
  const ready = await new Promise<ReadyLine>((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not ready in ${startLimitMs} ms\n${errors}`));
    }, startLimitMs);
    lines.once('line', (line) => {
      clearTimeout(late);
      resolve(JSON.parse(line) as ReadyLine);
    });
    void ended.then((code) => {
      clearTimeout(late);
      reject(new Error(`slipway serve exited with ${String(code)}\n${errors}`));
    });
  });
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const stop = async (): Promise<number | null> => {
    if (isRunning()) child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), 60_000);
    const code = await ended;
    clearTimeout(force);
    return code;
  };
  return {
    ...{ child, stop, url: ready.url, dataUrl: ready.data_url, recovered: ready.recovered },
    errors: () => errors,
    async kill() {
      if (isRunning()) child.kill('SIGKILL');
      await ended;
    },
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}
