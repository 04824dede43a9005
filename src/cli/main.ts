/** Entry of the command line: argv in, exit code out. Only this folder installs signal listeners or ends the process. */
import { CommanderError } from 'commander';
import { composeApp } from '../app/compose.ts';
import { ownVersion } from '../app/own-version.ts';
import { exitCodes } from './exit-codes.ts';
import { Interrupts } from './interrupts.ts';
import { processTerminal } from './process-terminal.ts';
import { buildProgram, type RunAction } from './program.ts';
import { reportError } from './report-error.ts';
import { withoutAliases } from './run-options.ts';
import type { Terminal } from './terminal.ts';

/** Runs the command line of this process. Resolves with the exit code; never rejects. */
export async function main(argv: readonly string[]): Promise<number> {
  const terminal = processTerminal();
  let exitCode: number = exitCodes.ok;
  const run: RunAction = async (action) => {
    using interrupts = new Interrupts(terminal);
    const { signal } = interrupts;
    exitCode = await action({
      terminal,
      signal,
      announceInterruptsBy: (announce) => interrupts.announceBy(announce),
      releaseInterrupts: () => interrupts[Symbol.dispose](),
      ports: async (variables = {}) =>
        await composeApp({ ...process.env, ...variables }, process.cwd()),
    });
  };
  reportDefects(terminal);
  try {
    const program = buildProgram(await ownVersion(), run);
    await program.parseAsync(withoutAliases(argv.length === 0 ? ['--help'] : argv), {
      from: 'user',
    });
    return exitCode;
  } catch (error) {
    return error instanceof CommanderError ? usageExitCode(error) : reportError(error, terminal);
  }
}

/** Commander has printed its message; help and version are no errors. */
function usageExitCode(error: CommanderError): number {
  return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
}

/** A defect ends the process with a sentence; the next start removes what the run had left. */
function reportDefects(terminal: Terminal): void {
  const report = (error: unknown): void => {
    process.exit(reportError(error, terminal));
  };
  process.once('uncaughtException', report);
  process.once('unhandledRejection', report);
}
