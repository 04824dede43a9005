/** Runs the real command line as a child process, with state and jobs in folders of the test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export const repositoryDir = path.resolve(import.meta.dirname, '../..');
export const bundledTasksDir = path.join(repositoryDir, 'tasks');

/** What `slipway run --json` prints, as far as tests read it. */
export interface RunDocument {
  readonly job: { readonly dir: string };
  readonly exit_code: number;
  readonly counts: { readonly total: number; readonly completed: number; readonly errored: number };
  readonly trials: readonly {
    readonly trial_name: string;
    readonly task_name: string;
    readonly rewards: Readonly<Record<string, number>> | null;
    readonly failure: {
      readonly code: string;
      readonly field: string | null;
      readonly remedy: string | null;
      readonly message: string;
    } | null;
  }[];
}

export interface CliRun {
  readonly child: ChildProcess;
  /** Settles when the process has ended. */
  readonly ended: Promise<{
    readonly exitCode: number | null;
    readonly stdout: string;
    readonly stderr: string;
  }>;
}

export function startSlipway(
  args: readonly string[],
  options: {
    readonly stateDir: string;
    readonly variables?: Readonly<Record<string, string>>;
    readonly cwd?: string;
  },
): CliRun {
  const child = spawn(process.execPath, [path.join(repositoryDir, 'bin/slipway.js'), ...args], {
    env: { ...process.env, SLIPWAY_STATE_DIR: options.stateDir, ...options.variables },
    cwd: options.cwd ?? repositoryDir,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const ended = once(child, 'close').then(([exitCode]) => ({
    exitCode: exitCode as number | null,
    ...output,
  }));
  return { child, ended };
}

/** Runs to the end and reads the JSON document; a run without one fails with all it printed. */
export async function slipwayRun(
  args: readonly string[],
  options: Parameters<typeof startSlipway>[1],
): Promise<RunDocument> {
  const { stdout, stderr, exitCode } = await startSlipway(
    ['run', '--json', '--yes', ...args],
    options,
  ).ended;
  try {
    return JSON.parse(stdout) as RunDocument;
  } catch {
    throw new Error(`no JSON document (exit ${exitCode})\n${stdout}\n${stderr}`);
  }
}
