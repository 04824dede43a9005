import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkInterfaceInfo } from 'node:os';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { isTakenHere, subnetsOf } from '../../../../src/environments/docker/network/subnets.ts';

test('a pool is cut into every subnet of the size once, with the gateway first in it', () => {
  const all = [...subnetsOf('10.213.0.0/24', { prefix: 26, seed: 'a' })];
  const sorted = all.map((each) => `${each.cidr} ${each.gateway}`).sort();
  assert.deepEqual(sorted, [
    '10.213.0.0/26 10.213.0.1',
    '10.213.0.128/26 10.213.0.129',
    '10.213.0.192/26 10.213.0.193',
    '10.213.0.64/26 10.213.0.65',
  ]);
});

test('names begin at different places of the pool', () => {
  const starts = new Set(
    Array.from({ length: 40 }, (_, index) => {
      const [first] = subnetsOf('10.213.0.0/16', { prefix: 29, seed: `sandbox-${index}` });
      return first?.cidr;
    }),
  );
  assert.ok(starts.size > 35, `${starts.size}`);
});

test('high addresses do not turn negative', () => {
  const [first] = subnetsOf('223.255.255.248/29', { prefix: 29, seed: 'x' });
  assert.deepEqual(first, { cidr: '223.255.255.248/29', gateway: '223.255.255.249' });
});

test('a pool that is too small is refused', () => {
  assert.throws(
    () => [...subnetsOf('10.0.0.0/30', { prefix: 29, seed: 'x' })],
    (error) => isRolloutError(error, 'CONFIG_INVALID'),
  );
});

const host = (address: string, cidr: string): NodeJS.Dict<NetworkInterfaceInfo[]> => ({
  eth0: [{ address, cidr, family: 'IPv4', netmask: '', mac: '', internal: false }],
});

for (const [address, cidr, isTaken] of [
  ['10.213.0.3', '10.213.0.3/32', true],
  ['10.213.200.1', '10.213.200.1/16', true],
  ['10.214.0.1', '10.214.0.1/16', false],
] as const)
  test(`10.213.0.0/29 ${isTaken ? 'is taken' : 'is free'} on a machine with ${cidr}`, () => {
    const subnet = { cidr: '10.213.0.0/29', gateway: '10.213.0.1' };
    assert.equal(isTakenHere(subnet, host(address, cidr)), isTaken);
  });
