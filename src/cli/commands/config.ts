/** `slipway config show`: what a server started here would run with, and where each value comes from. */
import type { Command } from 'commander';
import { maskedValue } from '../../config/serve/masked-value.ts';
import { readServeConfig } from '../../config/serve/read-serve-config.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { addServeOptions, serveFlags } from '../serve-options.ts';
import { renderTable } from '../table.ts';

export function addConfigCommands(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  addServeOptions(
    parent
      .command('show')
      .description('print the effective settings of slipway serve, and where each comes from')
      .option('--json', 'print a JSON document'),
  ).action((flags: { readonly json?: boolean }, command: Command) =>
    run(async (scope) => {
      const { terminal } = scope;
      const { machine } = await scope.ports();
      const config = await readServeConfig(serveFlags(command), machine);
      const rows = config.origins.map(({ key, value, from }) => ({
        key,
        // By its name too: a key of a table may itself be called a secret.
        value: maskedValue(value),
        from,
      }));
      if (flags.json === true)
        terminal.out(
          JSON.stringify({ schema_version: 1, file: config.file, settings: rows }, null, 2),
        );
      else
        terminal.out(
          renderTable(
            ['setting', 'value', 'from'],
            rows.map(({ key, value, from }) => [key, shown(value), from]),
          ),
        );
      return exitCodes.ok;
    }),
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
