import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { NatsBus } from '../../../src/scheduler/jetstream/nats-bus.ts';
import { NatsCluster, whyNoNats } from '../../support/nats/nats-cluster.ts';

describe('the queue of a service', { skip: whyNoNats, timeout: 240_000 }, () => {
  it('opens at a node that is cut off from the others when it comes back, for what was asked meanwhile is lost', async () => {
    await using cluster = await NatsCluster.start({ nodes: 3 });
    const [first = ''] = cluster.urls;
    const settings = {
      ...{ urls: [first], prefix: 'slipway', replicas: null, user: null, password: null },
      ...{ token: null, credentials: null, tls: { caFile: null, certFile: null, keyFile: null } },
    };
    await (await NatsBus.open(settings, 'before')).close();
    cluster.isolate(0, 'silent');
    // A node believes in its leader for some time.
    await delay(12_000);
    const opened = NatsBus.open(settings, 'meanwhile');
    opened.catch(() => undefined);
    await delay(4_000);
    cluster.isolate(0, 'open');
    await (await opened).close();
  });
});
