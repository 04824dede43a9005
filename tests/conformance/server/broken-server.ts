/** `slipway serve` that is broken in one way, which `BREAK` names: `places` sends nobody away, `abort` ends no model calls. */
import { Command } from 'commander';
import { composeApp } from '../../../src/app/compose.ts';
import { startServer } from '../../../src/app/serve.ts';
import { addServeOptions, serveFlags } from '../../../src/cli/serve-options.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { Admission } from '../../../src/scheduler/admission.ts';

const broken = process.env['BREAK'];
if (broken === 'places')
  Admission.prototype.tryReserve = function (tenant) {
    return this.force(tenant);
  };

const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
const server = await startServer(config, {
  ports,
  signal: never,
  replace: {
    gateway: (control) =>
      new Proxy(control, {
        get: (target, key) => {
          if (broken === 'abort' && key === 'abort') return async () => ({ callsEnded: 0 });
          const value: unknown = Reflect.get(target, key);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }),
  },
});
const { controlUrl, dataUrls, recovered } = server;
process.once('SIGTERM', () => void server.stop(never));
console.log(JSON.stringify({ url: controlUrl, data_url: dataUrls[0], recovered }));
