/** `slipway store backup` and `downgrade`. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { backupStore, downgradeStore } from '../../app/server-store.ts';
import { readServeConfig, type ServeFlags } from '../../config/serve/read-serve-config.ts';
import { silentLogger } from '../../core/logger.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { printJson } from '../server-command.ts';
import { countArgument } from './status.ts';

type Run = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

interface StoreFlags {
  readonly dataDir?: string;
  readonly config?: string;
  readonly json?: boolean;
}

export function addStoreCommands(parent: Command, run: Run): void {
  addFolderOptions(
    parent
      .command('backup')
      .description('copy the store into one file, also while the server runs')
      .argument('<FILE>', 'where the copy goes'),
  ).action((file: string, flags: StoreFlags) =>
    run(async (scope) => {
      const { dataDir, cwd } = await folderOf(scope, flags);
      const path = resolve(cwd, file);
      await backupStore(dataDir, path, scope.signal);
      if (flags.json === true) printJson(scope, { data_dir: dataDir, file: path });
      else scope.terminal.out(`the store of ${dataDir} is copied to ${path}`);
      return exitCodes.ok;
    }),
  );
  addFolderOptions(
    parent
      .command('downgrade')
      .description('take the store of a stopped server back to an earlier version of its schema')
      .argument('<VERSION>', 'version of the schema', countArgument),
  ).action((version: number, flags: StoreFlags) =>
    run(async (scope) => {
      const { dataDir } = await folderOf(scope, flags);
      const { from, to, copy } = await downgradeStore(dataDir, version, {
        ports: await scope.ports(),
        logger: silentLogger,
        signal: scope.signal,
      });
      if (flags.json === true) printJson(scope, { data_dir: dataDir, from, to, copy });
      else
        scope.terminal.out(
          copy === null
            ? `the store has version ${to} already`
            : `the store went from version ${from} to ${to}; as it was: ${copy}`,
        );
      return exitCodes.ok;
    }),
  );
}

function addFolderOptions(command: Command): Command {
  return command
    .option('--data-dir <DIR>', 'folder of the server (default: as slipway serve would take it)')
    .option('--config <FILE>', 'configuration of the server')
    .option('--json', 'print a JSON document');
}

async function folderOf(
  scope: CommandScope,
  { dataDir, config }: StoreFlags,
): Promise<{ readonly dataDir: string; readonly cwd: string }> {
  const { machine } = await scope.ports();
  const flags: ServeFlags = {
    ...(dataDir !== undefined && { '--data-dir': dataDir }),
    ...(config !== undefined && { '--config': config }),
  };
  return { dataDir: (await readServeConfig(flags, machine)).dataDir, cwd: machine.cwd };
}
