/** `slipway worker`: a host of a rollout service. The first signal drains it, the second one ends it at once. */
import type { Command } from 'commander';
import { startWorker } from '../../app/worker.ts';
import { readServeConfig } from '../../config/serve/read-serve-config.ts';
import type { CommandScope } from '../command-scope.ts';
import { addServeOptions, serveFlags } from '../serve-options.ts';
import { serveUntilStopped } from '../serve-until-stopped.ts';

export function addWorkerCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  addServeOptions(
    parent
      .command('worker')
      .description('execute rollouts of a server elsewhere, which hands them out by --queue')
      .option('--json', 'print the ready line as a JSON document'),
  ).action((flags: { readonly json?: boolean }, command: Command) =>
    run(async (scope) => {
      const ports = await scope.ports();
      const config = await readServeConfig(serveFlags(command), ports.machine);
      return await serveUntilStopped(
        scope,
        (signals) => startWorker(config, { ports, signal: signals.stop }),
        ({ dataUrls, dataDir, backend, name, slots }) =>
          flags.json === true
            ? JSON.stringify({
                ...{ schema_version: 1, url: dataUrls[0], data_url: dataUrls[0] },
                ...{ data_urls: dataUrls, data_dir: dataDir, backend, name, slots },
                ...{ recovered: 0, pid: process.pid },
              })
            : `slipway worker: ${name} with ${slots} slots (model calls at ${dataUrls.join(', ')}), backend ${backend}, data in ${dataDir}`,
      );
    }),
  );
}
