import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isSamePolicy,
  parseAllowedHost,
  withExtraHosts,
  type AllowedHostKind,
  type NetworkPolicy,
} from '../../src/wire/network-policy.ts';

const accepted: readonly (readonly [string, AllowedHostKind, string])[] = [
  ['example.com', 'hostname', 'example.com'],
  ['  Example.COM.. ', 'hostname', 'example.com'],
  ['localhost', 'hostname', 'localhost'],
  ['a-b.c1', 'hostname', 'a-b.c1'],
  ['999.1.1.1', 'hostname', '999.1.1.1'],
  ['10.0.0.1', 'ipv4-address', '10.0.0.1'],
  ['*.Example.COM.', 'wildcard-hostname', '*.example.com'],
  ['2001:DB8:0:0:0:0:0:1', 'ipv6-address', '2001:db8::1'],
  ['::', 'ipv6-address', '::'],
  ['1:0:0:2:0:0:0:3', 'ipv6-address', '1:0:0:2::3'],
  ['::ffff:1.2.3.4', 'ipv6-address', '::ffff:102:304'],
  ['10.0.0.0/8', 'ipv4-cidr', '10.0.0.0/8'],
  ['0.0.0.0/0', 'ipv4-cidr', '0.0.0.0/0'],
  ['10.1.2.3/32', 'ipv4-cidr', '10.1.2.3/32'],
  ['2001:DB8::/32', 'ipv6-cidr', '2001:db8::/32'],
  ['::1/128', 'ipv6-cidr', '::1/128'],
];

const refused: readonly (readonly [string, RegExp])[] = [
  ['', /must not be empty/],
  ['  . ', /must not be empty/],
  ['https://example.com', /not a CIDR block/],
  ['example.com/path', /not a CIDR block/],
  ['example.com:443', /no port/],
  ['[::1]', /no port, scheme, brackets/],
  ['fe80::1%eth0', /scope/],
  ['fe80::%eth0/64', /not a CIDR block/],
  ['10.0.0.1/8', /host bits/],
  ['2001:db8::1/32', /host bits/],
  ['10.0.0.0/33', /at most 32/],
  ['10.0.0.0/', /not a CIDR block/],
  ['10.0.0.0/8/8', /not a CIDR block/],
  ['*', /leading/],
  ['foo.*', /leading/],
  ['a.*.b', /leading/],
  ['*.*.b', /host name/],
  ['*.1.2.3.4', /host name/],
  ['*.', /leading/],
  ['-a.com', /not a host name/],
  ['a..b', /not a host name/],
  ['a_b.com', /not a host name/],
  [`${'a'.repeat(64)}.com`, /not a host name/],
  ['bücher.example', /not a host name/],
];

describe('an allowed host', () => {
  for (const [text, kind, value] of accepted)
    it(`${JSON.stringify(text)} is the ${kind} ${value}`, () => {
      assert.deepEqual(parseAllowedHost(text), { kind, value });
    });

  for (const [text, message] of refused)
    it(`${JSON.stringify(text)} is refused`, () => {
      assert.throws(() => parseAllowedHost(text, 'agent.extra_allowed_hosts[0]'), {
        code: 'CONFIG_INVALID',
        field: 'agent.extra_allowed_hosts[0]',
        message,
      });
    });

  it('stays the same when it is read again', () => {
    for (const [text] of accepted) {
      const once = parseAllowedHost(text);
      assert.deepEqual(parseAllowedHost(once.value), once);
    }
  });
});

const [a, b, c] = ['a.com', 'b.com', 'c.com'].map((text) => parseAllowedHost(text));

describe('extra hosts', () => {
  it('change nothing in a public policy, and ask for a warning', () => {
    const policy: NetworkPolicy = { mode: 'public' };
    assert.deepEqual(withExtraHosts(policy, [a!]), { policy, isIgnored: true });
    assert.deepEqual(withExtraHosts(policy, []), { policy, isIgnored: false });
  });

  it('turn no network into an allow list', () => {
    assert.deepEqual(withExtraHosts({ mode: 'no-network' }, [b!, a!, b!]).policy, {
      mode: 'allowlist',
      hosts: [b, a],
    });
  });

  it('leave a closed policy closed when there are none', () => {
    assert.deepEqual(withExtraHosts({ mode: 'no-network' }, []).policy, { mode: 'no-network' });
  });

  it('follow the hosts of an allow list, each once', () => {
    const policy: NetworkPolicy = { mode: 'allowlist', hosts: [a!, b!] };
    assert.deepEqual(withExtraHosts(policy, [c!, a!]).policy, {
      mode: 'allowlist',
      hosts: [a, b, c],
    });
  });
});

describe('two policies are the same', () => {
  const list = (...hosts: (typeof a)[]): NetworkPolicy => ({
    mode: 'allowlist',
    hosts: hosts.map((host) => host!),
  });
  const rows: readonly (readonly [NetworkPolicy, NetworkPolicy, boolean])[] = [
    [{ mode: 'public' }, { mode: 'public' }, true],
    [{ mode: 'public' }, { mode: 'no-network' }, false],
    [list(a, b), list(b, a), true],
    [list(a), list(a, b), false],
    [list(a, b), list(a), false],
    [list(), { mode: 'no-network' }, false],
  ];
  for (const [left, right, isSame] of rows)
    it(`${JSON.stringify(left)} and ${JSON.stringify(right)}: ${isSame}`, () => {
      assert.equal(isSamePolicy(left, right), isSame);
    });
});
