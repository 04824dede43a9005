/** `slipway serve`: the rollout server in this process. The first signal ends it in stages, the second one at once. */
import type { Command } from 'commander';
import { startServer } from '../../app/serve.ts';
import { readServeConfig } from '../../config/serve/read-serve-config.ts';
import type { CommandScope } from '../command-scope.ts';
import { addServeOptions, serveFlags } from '../serve-options.ts';
import { serveUntilStopped } from '../serve-until-stopped.ts';

export function addServeCommand(
  parent: Command,
  run: (action: (scope: CommandScope) => Promise<number>) => Promise<void>,
): void {
  addServeOptions(
    parent
      .command('serve')
      .description('serve rollouts: take requests, run them, call back with the result')
      .option('--json', 'print the ready line as a JSON document'),
  ).action((flags: { readonly json?: boolean }, command: Command) =>
    run(async (scope) => {
      const ports = await scope.ports();
      const config = await readServeConfig(serveFlags(command), ports.machine);
      return await serveUntilStopped(
        scope,
        async (signals) => {
          const server = await startServer(config, { ports, signal: signals.stop });
          signals.onReload(() => server.reload());
          return server;
        },
        ({ controlUrl, dataUrls, dataDir, backend, recovered }) =>
          flags.json === true
            ? JSON.stringify({
                ...{ schema_version: 1, url: controlUrl, data_url: dataUrls[0] },
                ...{ data_urls: dataUrls, data_dir: dataDir, backend, recovered },
                pid: process.pid,
              })
            : `slipway serve: ${controlUrl} (model calls at ${dataUrls.join(', ')}), backend ${backend}, data in ${dataDir}${recovered === 0 ? '' : `; taken up: ${recovered}`}`,
      );
    }),
  );
}
