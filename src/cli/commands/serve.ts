/** `slipway serve`: the rollout server in this process. The first signal ends it in stages, the second one at once. */
import type { Command } from 'commander';
import { startServer } from '../../app/serve.ts';
import { collectEarly } from '../../app/serve/early-collection.ts';
import { takePrecedence } from '../../app/serve/processor-share.ts';
import { readServeConfig } from '../../config/serve/read-serve-config.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { addServeOptions, serveFlags } from '../serve-options.ts';
import { ServerSignals } from '../server-signals.ts';

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
      const { terminal } = scope;
      const ports = await scope.ports();
      const config = await readServeConfig(serveFlags(command), ports.machine);
      // The process is ours from here on: the first signal asks for an end in stages, not for a cancellation.
      scope.releaseInterrupts();
      using ours = new DisposableStack();
      const signals = ours.use(new ServerSignals(terminal));
      ours.use(takePrecedence());
      collectEarly();
      const server = await startServer(config, { ports, signal: signals.stop });
      signals.onReload(() => server.reload());
      try {
        const { controlUrl, dataUrls, dataDir, backend, recovered } = server;
        terminal.out(
          flags.json === true
            ? JSON.stringify({
                schema_version: 1,
                url: controlUrl,
                data_url: dataUrls[0],
                data_urls: dataUrls,
                data_dir: dataDir,
                backend,
                recovered,
                pid: process.pid,
              })
            : `slipway serve: ${controlUrl} (model calls at ${dataUrls.join(', ')}), backend ${backend}, data in ${dataDir}${recovered === 0 ? '' : `; taken up: ${recovered}`}`,
        );
        const lost = await Promise.race([server.lost, signals.stopped]);
        if (lost !== null) {
          // Nothing that runs can finish.
          await server.stop(AbortSignal.abort(lost));
          throw lost;
        }
      } finally {
        await server.stop(signals.hurry);
      }
      return exitCodes.ok;
    }),
  );
}
