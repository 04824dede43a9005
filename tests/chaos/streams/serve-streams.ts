/**
 * `slipway serve` that prints every route that it gives, one JSON line each, so that agents elsewhere can use it. `STREAMS_VARIANT=leaky`: every third
 * rollout is never ended in the gateway, which nobody is told.
 */
import { Command } from 'commander';
import { composeApp } from '../../../src/app/compose.ts';
import { startServer } from '../../../src/app/serve.ts';
import { collectEarly } from '../../../src/app/serve/early-collection.ts';
import { takePrecedence } from '../../../src/app/serve/processor-share.ts';
import { addServeOptions, serveFlags } from '../../../src/cli/serve-options.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { GatewayControl } from '../../../src/gateway/gateway-control.ts';
import type { RouteLine } from './agents.ts';

const isLeaky = process.env['STREAMS_VARIANT'] === 'leaky';
const forgotten = new Set<string>();

function telling(inner: GatewayControl): GatewayControl {
  let count = 0;
  return {
    async register(request) {
      const { rolloutId } = request;
      const route = await inner.register(request);
      count += 1;
      if (isLeaky && count % 3 === 0) forgotten.add(rolloutId);
      console.log(JSON.stringify({ rolloutId, ...route } satisfies RouteLine));
      return route;
    },
    revoke: async (id) => (forgotten.has(id) ? undefined : await inner.revoke(id)),
    abort: async (id) => (forgotten.has(id) ? { callsEnded: 1 } : await inner.abort(id)),
    captured: (id) => inner.captured(id),
    forget: (id) => inner.forget(id),
    activity: (id) => inner.activity(id),
  };
}

const command = addServeOptions(new Command().option('--json'));
command.parse(process.argv);
const ports = await composeApp(process.env, process.cwd());
const config = await readServeConfig(serveFlags(command), ports.machine);
takePrecedence();
collectEarly();
const server = await startServer(config, { ports, signal: never, replace: { gateway: telling } });
const { controlUrl, dataUrls, recovered } = server;
const hurry = AbortSignal.abort(new Error('nothing is worth waiting for'));
process.once('SIGTERM', () => void server.stop(hurry));
console.log(
  JSON.stringify({ url: controlUrl, data_url: dataUrls[0], data_urls: dataUrls, recovered }),
);
