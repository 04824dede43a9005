/**
 * A process with the data server as `slipway serve` has it, and one live route. Prints its address with the key in it. Arguments: the upstream's address;
 * as JSON, the rules of the route; and a folder where its calls are captured (absent = they are not).
 */
import { fastify } from 'fastify';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { FileCapture } from '../../src/gateway/capture/file-capture.ts';
import { ModelGateway } from '../../src/gateway/model-gateway.ts';
import { registerGateway } from '../../src/gateway/register-gateway.ts';
import { noRules, type RouteRules } from '../../src/wire/rollout/route-rules.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';

const [upstreamUrl = '', rules = JSON.stringify(noRules), captureDir] = process.argv.slice(2);
const ports = { clock: systemClock, logger: silentLogger };
let address = '';
const relay = new ModelGateway({
  ...{ ...ports, baseUrl: () => address },
  ...{ policy: new UrlPolicy({ allow: [], privateAddresses: 'allow' }), openEngine },
  ...(captureDir !== undefined && {
    capture: new FileCapture({ ...ports, dir: captureDir, maxBytes: 1024 ** 4 }),
    engineKind: 'vllm',
  }),
  maxCallsPerRollout: 10_000,
});
const server = fastify();
registerGateway(server, relay);
server.get('/usage', () => {
  const { user, system } = process.cpuUsage();
  return { rss: process.memoryUsage.rss(), cpuMs: (user + system) / 1_000 };
});
address = await server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 });
const { apiKey } = await relay.register({
  ...{ rolloutId: 'bench', upstreamUrl, upstreamKey: 'bench-upstream-key' },
  rules: JSON.parse(rules) as RouteRules,
});
console.log(JSON.stringify({ url: `${address}/k/${apiKey}` }));
