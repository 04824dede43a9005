/** `slipway serve` that tells every host what to do that says it has a lease, not the first alone. The control of the chaos of fleets, with `worker-without-claims.ts`. */
import { Command } from 'commander';
import { composeApp } from '../../../src/app/compose.ts';
import { startServer } from '../../../src/app/serve.ts';
import { addServeOptions, serveFlags } from '../../../src/cli/serve-options.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { SharedPlacement } from './no-claims.ts';

const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
const server = await startServer(config, {
  ...{ ports, signal: never },
  replace: { makePlacement: (rolloutId, lease) => new SharedPlacement(rolloutId, lease) },
});
const { controlUrl, dataUrls, recovered } = server;
process.once('SIGTERM', () => void server.stop(never));
console.log(JSON.stringify({ url: controlUrl, data_url: dataUrls[0], recovered }));
