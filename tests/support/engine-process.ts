/** `slipway engine` as a child process: started on a free port, read through its log, ended or killed by the test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { repositoryDir } from './slipway-cli.ts';

/** A line of the engine's log, as far as tests read it. */
export interface EngineLogLine {
  readonly request_id: string;
  readonly prompt_ids: readonly number[];
  readonly output_ids: readonly number[];
  readonly logprobs: readonly number[] | null;
  readonly text: string;
  /** Whether the ids are those of encoding the text. */
  readonly canonical: boolean;
  readonly finish_reason: string | null;
  readonly fault: unknown;
}

export interface EngineProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly port: number;
  readonly url: string;
  /** For agents: `<url>/v1`. */
  readonly apiBase: string;
  /** SIGKILL, and gone when it resolves. */
  kill(): Promise<void>;
}

const startLimitMs = 240_000;

/** Starts it with these flags; `port` 0 = any. Disposing ends it, by force when it does not go. */
export async function startEngineProcess(
  flags: readonly string[],
  options: {
    readonly port?: number;
    readonly nodeArgs?: readonly string[];
    /** Default: the one of this repository. */
    readonly program?: string;
  } = {},
): Promise<EngineProcess> {
  const program = options.program ?? path.join(repositoryDir, 'bin/slipway.js');
  const nodeArgs = options.nodeArgs ?? [];
  const args = [...nodeArgs, program, 'engine', '--port', String(options.port ?? 0), ...flags];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = once(child, 'close');
  const url = await new Promise<string>((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not ready in ${startLimitMs} ms\n${errors}`));
    }, startLimitMs);
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /http:\/\/[^\s"]+/.exec(line)?.[0];
      if (found === undefined) return;
      clearTimeout(late);
      resolve(found.replace(/\/$/, ''));
    });
    child.once('close', (code) => {
      clearTimeout(late);
      reject(new Error(`slipway engine exited with ${String(code)}\n${errors}`));
    });
  });
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  };
  return {
    child,
    port: Number(new URL(url).port),
    url,
    apiBase: `${url}/v1`,
    kill,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const force = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(force);
    },
  };
}

/** Whole lines only: the last one may still be on its way. */
export async function readEngineLog(file: string): Promise<EngineLogLine[]> {
  const text = await readFile(file, 'utf8');
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as EngineLogLine);
}
