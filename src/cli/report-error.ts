import { errorRegistry } from '../core/error-registry.ts';
import { isRolloutError, messageOf } from '../core/errors.ts';
import { exitCodes } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** Prints an error for a person, without a stack, and answers the exit code. */
export function reportError(error: unknown, terminal: Terminal): number {
  if (!isRolloutError(error)) {
    terminal.err(
      `INTERNAL: ${messageOf(error)} — This is a defect of Slipway; please report it.\n`,
    );
    return exitCodes.failed;
  }
  terminal.err(`${error.describe()}\n`);
  if (error.detail !== null) terminal.err(`${indent(error.detail)}\n`);
  if (error.code === 'CANCELLED') return exitCodes.interrupted;
  // Whoever wrote the command or its files has to change something: an unknown agent is as much a mistake as an unknown flag.
  return errorRegistry[error.code].category === 'input' ? exitCodes.usage : exitCodes.failed;
}

function indent(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');
}
