/** A command of the command line in this process: much faster than a child, for what needs neither signals nor a real terminal. */
import { CommanderError } from 'commander';
import { composeApp } from '../../src/app/compose.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { reportError } from '../../src/cli/report-error.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

export interface Ended {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface InProcessOptions {
  readonly cwd: string;
  /** Nothing comes from this process. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  readonly onOut?: (text: string) => void;
}

export async function slipwayInProcess(
  argv: readonly string[],
  options: InProcessOptions,
): Promise<Ended> {
  let [exitCode, stdout, stderr] = [0, '', ''];
  const terminal: Terminal = {
    out(text) {
      stdout += `${text}\n`;
      options.onOut?.(text);
    },
    handOver: async (text) => void (stdout += text),
    err: (text) => void (stderr += text),
    isInteractive: false,
    columns: 80,
    ask: () => Promise.resolve(null),
  };
  const program = buildProgram('0', async (action) => {
    exitCode = await action({
      terminal,
      signal: options.signal ?? new AbortController().signal,
      announceInterruptsBy: () => undefined,
      releaseInterrupts: () => undefined,
      ports: (variables = {}) => composeApp({ ...options.variables, ...variables }, options.cwd),
    });
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
  } catch (error) {
    exitCode = error instanceof CommanderError ? exitCodes.usage : reportError(error, terminal);
  }
  return { exitCode, stdout, stderr };
}
