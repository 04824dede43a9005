/** `slipway worker` that writes down what it executes. */
import { Command } from 'commander';
import { composeApp } from '../../../src/app/compose.ts';
import { startWorker } from '../../../src/app/worker.ts';
import { addServeOptions, serveFlags } from '../../../src/cli/serve-options.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { noteExecutions } from './execution-sights.ts';

noteExecutions();
const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
const worker = await startWorker(config, { ports, signal: never });
process.once('SIGTERM', () => void worker.stop(never));
const [url] = worker.dataUrls;
console.log(JSON.stringify({ url, data_url: url, recovered: 0 }));
