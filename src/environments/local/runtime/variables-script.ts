import { shellQuote } from '../../shared/shell-quote.ts';

const variableName = /^[A-Za-z_]\w*$/;

/** A script of a POSIX shell that exports `NAME=value` assignments. Names that no shell can export are left out. */
export function variablesScript(assignments: readonly string[]): string {
  return assignments
    .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)] as const)
    .filter(([name]) => variableName.test(name))
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
    .join('');
}
