import assert from 'node:assert/strict';
import type { Environment } from '../../../../src/environments/environment.ts';
import type { NetworkPolicy } from '../../../../src/wire/network-policy.ts';
import type { CaseBench, ConformanceCase } from '../adapter.ts';
import { hostAddresses, HostListener } from '../host-listener.ts';
import { output } from '../looking.ts';

const noNetwork: NetworkPolicy = { mode: 'no-network' };
const open: NetworkPolicy = { mode: 'public' };

async function listen(bench: CaseBench, word: string, address = '0.0.0.0'): Promise<HostListener> {
  const listener = await HostListener.open(word, address);
  bench.defer(() => listener[Symbol.asyncDispose]());
  return listener;
}

async function fetched(
  bench: CaseBench,
  environment: Environment,
  command: string,
): Promise<string> {
  return (await environment.exec({ command }, bench.signal)).stdout;
}

/** The address that an allowlist names in this suite, and the list. */
function allowed(bench: CaseBench): { readonly address: string; readonly policy: NetworkPolicy } {
  const address = bench.adapter.allowedTarget?.address ?? hostAddresses()[0] ?? '127.0.0.1';
  const entry = bench.adapter.allowedTarget?.entry ?? { kind: 'ipv4-address', value: address };
  return { address, policy: { mode: 'allowlist', hosts: [entry] } };
}

/** Nothing of the host is reachable: neither its loopback nor any of its addresses. */
async function assertCutOff(bench: CaseBench, environment: Environment): Promise<void> {
  const listener = await listen(bench, 'of the host');
  const addresses = ['127.0.0.1', ...hostAddresses()];
  const commands = addresses.map((address) => bench.probes.fetchDirect(address, listener.port));
  await Promise.all(commands.map((command) => fetched(bench, environment, command)));
  assert.equal(listener.requests, 0);
}

const endpointOf = (listener: HostListener) => ({ host: '127.0.0.1', port: listener.port });

async function assertOnlyEndpoint(bench: CaseBench, network: NetworkPolicy): Promise<void> {
  const endpoint = await listen(bench, 'the endpoint', '127.0.0.1');
  const other = await listen(bench, 'another', '127.0.0.1');
  const environment = await bench.start({ network, hostEndpoint: endpointOf(endpoint) });
  const url = new URL(environment.hostEndpointUrl!);
  const reach = (host: string, port: number): Promise<string> =>
    fetched(bench, environment, bench.probes.fetchDirect(host, port));
  assert.match(await reach(url.hostname, Number(url.port)), /the endpoint/);
  await reach(url.hostname, other.port);
  await reach('127.0.0.1', other.port);
  assert.equal(other.requests, 0);
}

export const networkCases: readonly ConformanceCase[] = [
  {
    id: 'network.none',
    title:
      'without a network a sandbox reaches neither the loopback of the host nor any of its addresses',
    needs: 'noNetwork',
    async run(bench) {
      await assertCutOff(bench, await bench.start({ network: noNetwork }));
    },
  },
  {
    id: 'network.none-has-loopback',
    title: 'without a network the loopback of the sandbox itself works',
    needs: 'noNetwork',
    async run({ start, signal }) {
      const environment = await start({ network: noNetwork });
      assert.match(await output(environment, 'cat /proc/net/dev', signal), /\blo:/);
      assert.match(
        await output(environment, 'cat /etc/hosts', signal),
        /127\.0\.0\.1\s.*localhost/,
      );
    },
  },
  {
    id: 'network.endpoint-alone',
    title: 'without a network the host endpoint is reached, and no other listener on the host',
    needs: 'hostEndpoint',
    run: (bench) => assertOnlyEndpoint(bench, noNetwork),
  },
  {
    id: 'network.endpoint-url',
    title: 'there is no endpoint URL without an endpoint or before start',
    needs: 'hostEndpoint',
    async run(bench) {
      const endpoint = await listen(bench, 'the endpoint', '127.0.0.1');
      const environment = bench.create({ hostEndpoint: endpointOf(endpoint) });
      assert.equal(environment.hostEndpointUrl, null);
      assert.equal((await bench.shared()).hostEndpointUrl, null);
    },
  },
  {
    id: 'network.endpoint-and-public',
    title: 'with a public network the host endpoint is reached too',
    needs: 'hostEndpoint',
    async run(bench) {
      const endpoint = await listen(bench, 'the endpoint', '127.0.0.1');
      const hostEndpoint = endpointOf(endpoint);
      const environment = await bench.start({ network: open, hostEndpoint });
      const url = new URL(environment.hostEndpointUrl!);
      const command = bench.probes.fetchDirect(url.hostname, Number(url.port));
      assert.match(await fetched(bench, environment, command), /the endpoint/);
    },
  },
  {
    id: 'network.public',
    title: 'with a public network an outside address of the host is reached',
    async run(bench) {
      const listener = await listen(bench, 'outside');
      const environment = await bench.start({ network: open });
      const command = bench.probes.fetchDirect(allowed(bench).address, listener.port);
      assert.match(await fetched(bench, environment, command), /outside/);
    },
  },
  {
    id: 'network.allowlist',
    title: 'an allowlist lets its hosts through, plainly and tunnelled, and refuses the rest',
    needs: 'allowlist',
    async run(bench) {
      const { address, policy } = allowed(bench);
      const listener = await listen(bench, 'allowed word');
      const environment = await bench.start({ network: policy });
      for (const probe of [bench.probes.fetchProxied, bench.probes.fetchTunnelled])
        assert.match(
          await fetched(bench, environment, probe(address, listener.port)),
          /allowed word/,
        );
      const before = listener.requests;
      const refused = ['127.0.0.1', '127.0.0.2', 'localhost', ...hostAddresses()];
      for (const host of refused.filter((candidate) => candidate !== address)) {
        await fetched(bench, environment, bench.probes.fetchProxied(host, listener.port));
        await fetched(bench, environment, bench.probes.fetchTunnelled(host, listener.port));
      }
      assert.equal(listener.requests, before);
    },
  },
  {
    id: 'network.allowlist-empty',
    title: 'an empty allowlist reaches nothing, whether or not a program honours a proxy',
    needs: 'allowlist',
    async run(bench) {
      const environment = await bench.start({ network: { mode: 'allowlist', hosts: [] } });
      await assertCutOff(bench, environment);
      const listener = await listen(bench, 'of the host');
      for (const address of ['127.0.0.1', ...hostAddresses()])
        await fetched(bench, environment, bench.probes.fetchProxied(address, listener.port));
      assert.equal(listener.requests, 0);
    },
  },
  {
    id: 'network.allowlist-fails-closed',
    title:
      'under an allowlist a program that ignores the proxy reaches no host that is not allowed',
    needs: 'allowlist',
    async run(bench) {
      const { address, policy } = allowed(bench);
      const listener = await listen(bench, 'of the host');
      const environment = await bench.start({ network: policy });
      for (const host of ['127.0.0.1', ...hostAddresses()].filter((each) => each !== address))
        await fetched(bench, environment, bench.probes.fetchDirect(host, listener.port));
      assert.equal(listener.requests, 0);
    },
  },
  {
    id: 'network.endpoint-under-allowlist',
    title: 'under an allowlist the host endpoint is reached, and no other listener on the host',
    needs: 'allowlist',
    run: (bench) => assertOnlyEndpoint(bench, { mode: 'allowlist', hosts: [] }),
  },
  {
    id: 'network.switch',
    title: 'the policy can be changed from public to none and back while the sandbox runs',
    needs: 'dynamicNetworkPolicy',
    async run(bench) {
      const listener = await listen(bench, 'outside');
      const environment = await bench.start({ network: open, laterNetworks: [noNetwork] });
      const command = bench.probes.fetchDirect(allowed(bench).address, listener.port);
      assert.match(await fetched(bench, environment, command), /outside/);
      await environment.setNetworkPolicy(noNetwork, bench.signal);
      await assertCutOff(bench, environment);
      await environment.setNetworkPolicy(open, bench.signal);
      assert.match(await fetched(bench, environment, command), /outside/);
    },
  },
  {
    id: 'network.switch-opens',
    title:
      'a sandbox that starts without a network can be given one, and an allowlist, and lose both',
    needs: 'dynamicNetworkPolicy',
    async run(bench) {
      const { address, policy } = allowed(bench);
      const listener = await listen(bench, 'outside');
      const environment = await bench.start({ network: noNetwork, laterNetworks: [open, policy] });
      const direct = bench.probes.fetchDirect(address, listener.port);
      await assertCutOff(bench, environment);
      await environment.setNetworkPolicy(open, bench.signal);
      assert.match(await fetched(bench, environment, direct), /outside/);
      if (bench.provider.capabilities.allowlist) {
        await environment.setNetworkPolicy(policy, bench.signal);
        const proxied = bench.probes.fetchProxied(address, listener.port);
        assert.match(await fetched(bench, environment, proxied), /outside/);
      }
      await environment.setNetworkPolicy(noNetwork, bench.signal);
      await assertCutOff(bench, environment);
      const before = listener.requests;
      await fetched(bench, environment, bench.probes.fetchProxied(address, listener.port));
      assert.equal(listener.requests, before);
    },
  },
  {
    id: 'network.switch-keeps-endpoint',
    title: 'the host endpoint stays reachable at its URL whatever the policy changes to',
    needs: 'dynamicNetworkPolicy',
    async run(bench) {
      const endpoint = await listen(bench, 'the endpoint', '127.0.0.1');
      const environment = await bench.start({
        network: open,
        laterNetworks: [noNetwork],
        hostEndpoint: endpointOf(endpoint),
      });
      const url = new URL(environment.hostEndpointUrl!);
      const command = bench.probes.fetchDirect(url.hostname, Number(url.port));
      for (const policy of [noNetwork, open]) {
        await environment.setNetworkPolicy(policy, bench.signal);
        assert.match(await fetched(bench, environment, command), /the endpoint/);
        assert.equal(new URL(environment.hostEndpointUrl!).href, url.href);
      }
    },
  },
];
