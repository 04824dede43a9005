import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  needsChange,
  planNetwork,
} from '../../../../src/environments/docker/network/network-plan.ts';
import type { NetworkPolicy } from '../../../../src/wire/network-policy.ts';

const open: NetworkPolicy = { mode: 'public' };
const closed: NetworkPolicy = { mode: 'no-network' };
const listed: NetworkPolicy = { mode: 'allowlist', hosts: [] };
const endpoint = { host: '127.0.0.1', port: 1 };

const own = (wantsProxy: boolean, hasPublicPhase: boolean): object => ({
  kind: 'own',
  wantsProxy,
  hasPublicPhase,
});

for (const [title, network, laterNetworks, hostEndpoint, plan] of [
  ['always public', open, [open], null, { kind: 'bridge' }],
  ['never a network', closed, [], null, { kind: 'none' }],
  ['an endpoint alone', closed, [], endpoint, own(false, false)],
  ['public with an endpoint', open, [], endpoint, own(false, true)],
  ['an allow list', listed, [], null, own(true, false)],
  ['public, later none', open, [closed], null, own(false, true)],
  ['none, later a list', closed, [listed], null, own(true, false)],
  ['a list, later public', listed, [open], null, own(true, true)],
] as const)
  test(`${title} is planned as ${JSON.stringify(plan)}`, () => {
    assert.deepEqual(planNetwork({ network, laterNetworks, hostEndpoint }), plan);
  });

for (const [title, network, laterNetworks, policy, expected] of [
  ['public stays public', open, [], open, false],
  ['none stays none', closed, [], closed, false],
  ['public to an unplanned none', open, [], closed, 'refused'],
  ['none to a planned list', closed, [listed], listed, true],
  ['public to an unplanned list', open, [closed], listed, 'refused'],
  ['a list to an unplanned public', listed, [], open, 'refused'],
  ['a list to another list', listed, [], { mode: 'allowlist', hosts: [] }, true],
] as const)
  test(`${title}: ${String(expected)}`, () => {
    const plan = planNetwork({ network, laterNetworks, hostEndpoint: null });
    const change = (): boolean => needsChange(plan, network, policy);
    if (expected === 'refused') assert.throws(change, { code: 'CAPABILITY_UNSUPPORTED' });
    else assert.equal(change(), expected);
  });
