import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  canonicalServerId,
  checkInstanceId,
  checkServerId,
  IdentityProblem,
  serverIdOf,
} from '../../src/agent-server/identity.ts';

const addresses: Readonly<Record<string, readonly string[]>> = {
  a: ['10.0.0.1', '10.0.0.2'],
  b: ['10.0.0.2'],
  c: ['10.0.0.3'],
  six: ['2001:DB8:0::1'],
};
const resolve = async (host: string): Promise<readonly string[]> => {
  const found = addresses[host];
  if (found === undefined) throw new Error('no such host');
  return found;
};

describe('the identity of a client', () => {
  const servers: readonly (readonly [string, string | null])[] = [
    ['host:1', 'host:1'],
    ['HOST.Example:30000', 'host.example:30000'],
    ['10.0.0.1:65535', '10.0.0.1:65535'],
    ['[2001:DB8:0:0::1]:80', '[2001:db8::1]:80'],
    ...[
      ...['', 'host', 'host:', ':1', 'http://host:1', 'user@host:1', 'host:1/path', 'host:1?q'],
      ...['host:1#f', 'host:port', 'host:65536', 'host:-1', '::1:80', '[fe80::1%eth0]:80'],
      ...['fe80::1%eth0:80', '-host:1', 'ho st:1', 'host:1\n', '[host]:1', ' host:1'],
    ].map((id) => [id, null] as const),
  ];
  for (const [id, canonical] of servers)
    it(`${JSON.stringify(id)} is ${canonical ?? 'no server'}`, () => {
      if (canonical === null) assert.throws(() => canonicalServerId(id), IdentityProblem);
      else assert.equal(canonicalServerId(id), canonical);
    });

  it('has an instance id of 1 to 128 plain characters', () => {
    for (const id of ['a', '0.b_c-d', 'x'.repeat(128)]) assert.equal(checkInstanceId(id), id);
    for (const id of ['', ' ', 'a b', '.a', '-a', 'a/b', 'a\n', 'x'.repeat(129)])
      assert.throws(() => checkInstanceId(id), IdentityProblem);
  });

  it('is read from an address with the port of its scheme', () => {
    assert.equal(serverIdOf('http://H:3/sessions/x/v1'), 'h:3');
    assert.equal(serverIdOf('https://h/v1'), 'h:443');
    assert.equal(serverIdOf('http://[::1]/v1'), '[::1]:80');
    for (const url of ['', 'h:3', 'ftp://h/x', 'http://u:p@h/v1', 'http://'])
      assert.throws(() => serverIdOf(url), IdentityProblem, url);
  });

  const pairs: readonly (readonly [id: string, baseUrl: string, canonical: string | null])[] = [
    ['a:1', 'http://a:1/v1', 'a:1'],
    ['unknown:1', 'http://UNKNOWN:1/v1', 'unknown:1'],
    ['a:1', 'http://b:1/v1', 'a:1'],
    ['10.0.0.1:1', 'http://a:1/v1', '10.0.0.1:1'],
    ['[2001:db8::1]:1', 'http://six:1/v1', '[2001:db8::1]:1'],
    ['a:1', 'http://c:1/v1', null],
    ['a:1', 'http://unknown:1/v1', null],
    ['a:1', 'http://a:2/v1', null],
    ['a:1', 'file:///a', null],
  ];
  for (const [id, baseUrl, canonical] of pairs)
    it(`${id} at ${baseUrl} is ${canonical === null ? 'refused' : 'the same server'}`, async () => {
      const checked = checkServerId(id, { baseUrl, resolve });
      if (canonical === null) await assert.rejects(checked, IdentityProblem);
      else assert.equal(await checked, canonical);
    });
});
