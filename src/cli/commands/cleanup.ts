/** `slipway cleanup`: removes what dead runs left, and says what it leaves alone. */
import type { Command } from 'commander';
import { cleanUp } from '../../app/clean-up.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';

export function addCleanupCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  parent
    .command('cleanup')
    .description('remove sandboxes that dead runs left; nothing foreign, nothing that lives')
    .option('--dry-run', 'only say what would be removed')
    .option('--json', 'print a JSON document')
    .action((flags: { readonly dryRun?: boolean; readonly json?: boolean }) =>
      run(async (scope) => {
        const ports = await scope.ports();
        const isDryRun = flags.dryRun === true;
        const report = await cleanUp({ isDryRun, signal: scope.signal }, ports);
        if (flags.json === true)
          scope.terminal.out(JSON.stringify({ schema_version: 1, ...report }, null, 2));
        else {
          const verb = isDryRun ? 'would remove' : 'removed';
          for (const { name, provider, reason } of report.removed)
            scope.terminal.out(`${verb} ${provider} ${name}: ${reason}`);
          for (const { name, provider, reason } of report.leftAlone)
            scope.terminal.out(`left alone ${provider} ${name}: ${reason}`);
          for (const { provider, problem } of report.problems)
            scope.terminal.err(`${provider}: ${problem}\n`);
          if (report.removed.length === 0) scope.terminal.out('nothing to remove');
        }
        return report.problems.length === 0 ? exitCodes.ok : exitCodes.failed;
      }),
    );
}
