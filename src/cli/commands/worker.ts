/** `slipway worker`: a host of a rollout service. The first signal drains it, the second one ends it at once. */
import type { Command } from 'commander';
import { startWorker } from '../../app/worker.ts';
import { collectEarly } from '../../app/serve/early-collection.ts';
import { takePrecedence } from '../../app/serve/processor-share.ts';
import { readServeConfig } from '../../config/serve/read-serve-config.ts';
import type { CommandScope } from '../command-scope.ts';
import { exitCodes } from '../exit-codes.ts';
import { addServeOptions, serveFlags } from '../serve-options.ts';
import { ServerSignals } from '../server-signals.ts';

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
      const { terminal } = scope;
      const ports = await scope.ports();
      const config = await readServeConfig(serveFlags(command), ports.machine);
      // The process is ours from here on: the first signal asks for an end in stages, not for a cancellation.
      scope.releaseInterrupts();
      using ours = new DisposableStack();
      const signals = ours.use(new ServerSignals(terminal));
      ours.use(takePrecedence());
      collectEarly();
      const worker = await startWorker(config, { ports, signal: signals.stop });
      try {
        const { dataUrls, dataDir, backend, name, slots } = worker;
        terminal.out(
          flags.json === true
            ? JSON.stringify({
                ...{ schema_version: 1, url: dataUrls[0], data_url: dataUrls[0] },
                ...{ data_urls: dataUrls, data_dir: dataDir, backend, name, slots },
                ...{ recovered: 0, pid: process.pid },
              })
            : `slipway worker: ${name} with ${slots} slots (model calls at ${dataUrls.join(', ')}), backend ${backend}, data in ${dataDir}`,
        );
        const lost = await Promise.race([worker.lost, signals.stopped]);
        if (lost !== null) {
          await worker.stop(AbortSignal.abort(lost));
          throw lost;
        }
      } finally {
        await worker.stop(signals.hurry);
      }
      return exitCodes.ok;
    }),
  );
}
