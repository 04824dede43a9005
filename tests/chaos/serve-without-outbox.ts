/** `slipway serve` whose outbox is off: callbacks that were not delivered when it died are forgotten. The control of the kill test. */
import { Command } from 'commander';
import { composeApp } from '../../src/app/compose.ts';
import { startServer } from '../../src/app/serve.ts';
import { addServeOptions, serveFlags } from '../../src/cli/serve-options.ts';
import { readServeConfig } from '../../src/config/serve/read-serve-config.ts';
import { never } from '../../src/core/linked-abort.ts';

const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
const server = await startServer(config, {
  ports,
  signal: never,
  replace: {
    store: (store) =>
      new Proxy(store, {
        get: (target, key) => {
          if (key === 'recover')
            return async () => ({ ...(await target.recover()), delivering: [], pending: [] });
          const value: unknown = Reflect.get(target, key);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }),
  },
});
const { controlUrl, dataUrls, recovered } = server;
process.once('SIGTERM', () => void server.stop(never));
console.log(JSON.stringify({ url: controlUrl, data_url: dataUrls[0], recovered }));
