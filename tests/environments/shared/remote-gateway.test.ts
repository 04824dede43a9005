import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { checkGatewayUrl, remoteGateway } from '../../../src/environments/shared/remote-gateway.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FakeMachine, type FakeMachineOptions } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';

class RemoteFake extends FakeProvider {
  readonly isRemote = true;
}

function remote(url: string | null, capabilities: FakeMachineOptions['capabilities'] = {}) {
  const machine = new FakeMachine({ capabilities: { hostEndpoint: false, ...capabilities } });
  return { machine, provider: remoteGateway(new RemoteFake(machine), url) };
}

const hostEndpoint = { host: '127.0.0.1', port: 8001 };

for (const url of [
  'http://127.0.0.1:8001',
  'http://127.9.9.9',
  'http://localhost:8001',
  'http://gateway.localhost',
  'http://0.0.0.0:8001',
  'http://[::1]:8001',
  'http://[::]:8001',
  'http://[::ffff:127.0.0.1]:8001',
  'http://169.254.10.1',
  'http://[fe80::1]',
  'http://box.local',
])
  test(`${url} is no address that another machine could reach`, () => {
    assert.throws(
      () => remote(url),
      (error) =>
        isRolloutError(error, 'CONFIG_INVALID') &&
        error.field === '--gateway-url' &&
        error.remedy !== null,
    );
  });

for (const url of ['ftp://gw.example.com', 'gw.example.com', 'http://u:p@gw.example.com'])
  test(`${url} is no address of a gateway`, () => {
    assert.throws(() => checkGatewayUrl(url), /CONFIG_INVALID|not an http|login/);
  });

test('public addresses, private networks and names pass', () => {
  for (const url of ['https://gw.example.com/x/', 'http://10.0.0.5:8001', 'http://[2001:db8::1]'])
    assert.equal(checkGatewayUrl(url), url.replace(/\/$/, ''));
});

test('a sandbox elsewhere has the given address instead of the one of this machine', async () => {
  const { provider } = remote('https://gw.example.com/at/{port}/');
  assert.equal(provider.capabilities.hostEndpoint, true);
  const environment = provider.environment(environmentSpec('one', { hostEndpoint }));
  assert.equal(environment.hostEndpointUrl, null);
  await environment.start({ signal: never });
  assert.equal(environment.hostEndpointUrl, 'https://gw.example.com/at/8001');
  await environment.destroy();
});

test('where the network is restricted, the gateway is one more allowed host', async () => {
  const { machine, provider } = remote('https://gw.example.com');
  const network = { mode: 'no-network' } as const;
  await provider
    .environment(environmentSpec('one', { hostEndpoint, network, laterNetworks: [network] }))
    .start({ signal: never });
  const { spec } = machine.sandboxes.get('one')!;
  const opened = {
    mode: 'allowlist',
    hosts: [{ kind: 'hostname', value: 'gw.example.com' }],
  };
  assert.deepEqual([spec.network, spec.laterNetworks], [opened, [opened]]);
  assert.equal(spec.hostEndpoint, null);
});

test('an environment without allow lists refuses a closed network beside a gateway', () => {
  const { provider } = remote('https://gw.example.com', { allowlist: false });
  const network = { mode: 'no-network' } as const;
  assert.throws(
    () => provider.environment(environmentSpec('one', { hostEndpoint, network })),
    (error) => isRolloutError(error, 'CAPABILITY_UNSUPPORTED'),
  );
  provider.environment(environmentSpec('two', { network })); // nobody in it calls a model
});

test('without an address it says which flag gives one, and only where a call comes from inside', () => {
  const { provider } = remote(null);
  assert.equal(provider.capabilities.hostEndpoint, false);
  assert.throws(
    () => provider.environment(environmentSpec('one', { hostEndpoint })),
    (error) => isRolloutError(error, 'CAPABILITY_UNSUPPORTED') && error.field === '--gateway-url',
  );
  provider.environment(environmentSpec('two'));
});

test('an environment of this machine stays as it is, whatever the address', () => {
  const provider = new FakeProvider();
  assert.equal(remoteGateway(provider, 'http://127.0.0.1:1'), provider);
});
