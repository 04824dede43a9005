/** `slipway worker` for whom every claim is its own: what it was given, it executes. With the front end of `front-end-without-claims.ts`, the control of the chaos of fleets. */
import { Command } from 'commander';
import { composeApp } from '../../../src/app/compose.ts';
import { startWorker } from '../../../src/app/worker.ts';
import { addServeOptions, serveFlags } from '../../../src/cli/serve-options.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { everyonesOwn } from './no-claims.ts';

const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
const worker = await startWorker(config, {
  ...{ ports, signal: never },
  replace: { claims: () => everyonesOwn },
});
process.once('SIGTERM', () => void worker.stop(never));
console.log(
  JSON.stringify({ url: worker.dataUrls[0], data_url: worker.dataUrls[0], recovered: 0 }),
);
