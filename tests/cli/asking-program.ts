/** A program that asks one question as the command line does, for tests that give it a terminal. */
import { Interrupts } from '../../src/cli/interrupts.ts';
import { processTerminal } from '../../src/cli/process-terminal.ts';
import { reportError } from '../../src/cli/report-error.ts';

const terminal = processTerminal();
using interrupts = new Interrupts(terminal);
try {
  terminal.out(`answer ${await terminal.ask('Proceed? ', interrupts.signal)}`);
} catch (error) {
  process.exitCode = reportError(error, terminal);
}
