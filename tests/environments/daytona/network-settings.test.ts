import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastUser } from '../../../src/environments/daytona/images/last-user.ts';
import { networkSettings } from '../../../src/environments/daytona/network-settings.ts';
import { parseAllowedHost } from '../../../src/wire/network-policy.ts';

const none = { networkBlockAll: false, networkAllowList: '', domainAllowList: '' };
const allow = (...hosts: readonly string[]): Parameters<typeof networkSettings>[0] => ({
  mode: 'allowlist',
  hosts: hosts.map((host) => parseAllowedHost(host)),
});

test('a policy becomes all three fields of the service, so that a switch leaves nothing behind', () => {
  assert.deepEqual(networkSettings({ mode: 'public' }), none);
  assert.deepEqual(networkSettings({ mode: 'no-network' }), { ...none, networkBlockAll: true });
  assert.deepEqual(networkSettings(allow()), { ...none, networkBlockAll: true });
  assert.deepEqual(networkSettings(allow('10.0.0.0/8', '192.0.2.7')), {
    ...none,
    networkAllowList: '10.0.0.0/8,192.0.2.7/32',
  });
  assert.deepEqual(networkSettings(allow('example.com', '*.example.org')), {
    ...none,
    domainAllowList: 'example.com,*.example.org',
  });
});

test('what the service has no words for is CAPABILITY_UNSUPPORTED', () => {
  for (const policy of [
    allow('2001:db8::1'),
    allow('2001:db8::/32'),
    allow('example.com', '192.0.2.7'),
  ])
    assert.throws(() => networkSettings(policy), { code: 'CAPABILITY_UNSUPPORTED' });
});

test('the user of an image is the last USER of its last stage', () => {
  assert.equal(lastUser('FROM a\nUSER one\nFROM b\nRUN x\n'), null);
  assert.equal(lastUser('FROM a\nUSER one\nuser  two:staff\n'), 'two');
  assert.equal(lastUser('FROM a\nUSER $NAME\n'), null);
});
