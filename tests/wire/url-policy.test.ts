import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { describe, test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { parseIpAddress } from '../../src/wire/ip-address.ts';
import { isPrivateAddress } from '../../src/wire/private-address.ts';
import { UrlPolicy, urlParts } from '../../src/wire/url-policy.ts';
import { seededRandom } from '../support/random.ts';

const open = new UrlPolicy({ allow: [], privateAddresses: 'allow' });
const closed = new UrlPolicy({ allow: [], privateAddresses: 'deny' });

describe('the pieces of a URL', () => {
  test('path and query stay byte for byte, the login becomes a header', () => {
    assert.deepEqual(urlParts('HTTP://u%20:p%3A@EXAMPLE.org:80/a%2Fb/../c?x=%41&y#z'), {
      origin: 'http://example.org',
      host: 'example.org',
      path: '/a%2Fb/../c?x=%41&y',
      authorization: `Basic ${Buffer.from('u :p:').toString('base64')}`,
    });
    assert.equal(urlParts('https://h?x')?.path, '/?x');
    assert.equal(urlParts('https://h')?.path, '/');
    assert.equal(
      urlParts('https://ä.example/é\ud800?x=ü%41')?.path,
      '/%C3%A9%EF%BF%BD?x=%C3%BC%41',
    );
    assert.equal(urlParts('https://ä.example/')?.host, 'xn--4ca.example');
  });

  const none = [
    ...[
      '',
      'h',
      '//h/',
      'ftp://h/',
      'file:///etc/passwd',
      'http://',
      'http:///x',
      'http://h:99999/',
    ],
    ...['http://h/a b', 'http://h/\n', 'http://[::1/', 'http://u@/x', 'javascript:1'],
  ];
  for (const url of none)
    test(`is refused by every policy: ${JSON.stringify(url)}`, () => {
      assert.equal(urlParts(url), null);
      assert.equal(open.problem(url), 'is not an http or https URL');
    });
});

test('the host is the one that other readers of URLs see, whatever the text', () => {
  const random = seededRandom(11);
  const pieces = [
    ...['http', 'https', ':', '/', '//', '@', '\\\\', '?', '#', '[', ']', '::1', '%40', '%2f', '.'],
    ...['a.example', 'b.example', '127.0.0.1', ':80', 'ä', '%00', ';', ' ', '\t', '0x7f.1', '..'],
  ];
  let read = 0;
  for (let round = 0; round < 20_000; round += 1) {
    const length = 1 + Math.floor(random() * 8);
    const tail = Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]);
    const url = `http://${tail.join('')}`;
    const parts = urlParts(url);
    if (parts === null) continue;
    read += 1;
    assert.equal(URL.parse(url)?.origin, parts.origin, url);
  }
  assert.ok(read > 1_000, String(read));
});

describe('private addresses', () => {
  const hosts: readonly [string, boolean][] = [
    ...['127.0.0.1', '127.255.0.9', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255'].map(
      (host): [string, boolean] => [host, true],
    ),
    ...['192.168.1.1', '169.254.169.254', '100.64.0.1', '224.0.0.1', '255.255.255.255'].map(
      (host): [string, boolean] => [host, true],
    ),
    ...['[::]', '[::1]', '[fe80::1]', '[fd00::1]', '[fec0::1]', '[ff02::1]'].map(
      (host): [string, boolean] => [host, true],
    ),
    ...['[::ffff:127.0.0.1]', '[::127.0.0.1]', '[64:ff9b::10.0.0.1]', '[2002:7f00:1::]'].map(
      (host): [string, boolean] => [host, true],
    ),
    // Other spellings of 127.0.0.1 that resolvers accept.
    ...['2130706433', '0x7f.1', '0177.0.0.1', '127.1', '%31%32%37.0.0.1'].map(
      (host): [string, boolean] => [host, true],
    ),
    ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', '%6c%6fcalhost'].map(
      (host): [string, boolean] => [host, true],
    ),
    ...['8.8.8.8', '172.15.0.1', '172.32.0.1', '100.128.0.1', '1.1.1.1', '[2606:4700::1111]'].map(
      (host): [string, boolean] => [host, false],
    ),
    ...['[::ffff:8.8.8.8]', '[64:ff9b::8.8.8.8]', '[2002:808:808::]', 'example.org'].map(
      (host): [string, boolean] => [host, false],
    ),
  ];
  for (const [host, isPrivate] of hosts)
    test(`${host} is ${isPrivate ? 'refused where they are denied' : 'public'}`, () => {
      assert.equal(closed.problem(`http://${host}:8000/x`) !== null, isPrivate);
      assert.equal(open.problem(`http://${host}:8000/x`), null);
    });

  test('the range of an address is that of its family', () => {
    assert.equal(isPrivateAddress(parseIpAddress('::7f00:1')!), true);
    assert.equal(isPrivateAddress(parseIpAddress('7f00::1')!), false);
  });
});

describe('the list of allowed addresses', () => {
  const policy = new UrlPolicy({
    allow: [
      'https://a.example',
      'http://b.example:81/call/',
      'http://10.0.0.7:9',
      'http://c.example/x',
    ],
    privateAddresses: 'deny',
  });
  const allowed = [
    ...['https://a.example/anything?x', 'https://A.example:443', 'https://a.example/../x'],
    ...['http://b.example:81/call/', 'http://b.example:81/call/1/x?y=..', 'http://10.0.0.7:9/x'],
    ...['http://c.example/x', 'http://c.example/x/y', 'http://c.example/x?y'],
  ];
  for (const url of allowed)
    test(`allows ${url}`, () => {
      assert.equal(policy.problem(url), null);
    });
  const refused = [
    ...[
      'http://a.example/',
      'https://a.example:444/',
      'https://a.example.evil/',
      'https://b.example',
    ],
    ...['http://b.example:81/', 'http://b.example:81/callback', 'http://b.example:81/call/../x'],
    ...[
      'http://b.example:81/call/%2e%2E/x',
      'http://b.example:81/call/..;/x',
      'http://b.example:81/call/%2e%2e%3bv=1/x',
      'http://b.example:81/call/..%2fx',
      'http://10.0.0.8:9/',
    ],
    ...['http://c.example/xy', 'https://a.example@evil.example/', 'http://b.example:81/call/..\\x'],
    ...['http://127.0.0.1/', 'https://a.example\\@evil.example/', 'http://b.example:81/call/..'],
  ];
  for (const url of refused)
    test(`refuses ${url}`, () => {
      assert.notEqual(policy.problem(url), null);
    });

  for (const entry of ['a.example', 'ftp://a', 'http://u:p@h/'])
    test(`an entry that is none is a mistake of the configuration: ${entry}`, () => {
      assert.throws(
        () => new UrlPolicy({ allow: [entry], privateAddresses: 'allow' }),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === 'callbacks.allow.0',
      );
    });

  test('a problem never shows path, query or login', () => {
    for (const url of [
      'http://u:secret@evil.example/secret?secret',
      'http://u:secret@127.0.0.1/secret',
    ])
      assert.doesNotMatch(policy.problem(url) ?? '', /secret/);
  });
});

describe('the guard of connections', () => {
  const found = (addresses: readonly string[]): LookupFunction => {
    const all: LookupAddress[] = addresses.map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
    return (_host, options, callback) => {
      if (options.all === true) callback(null, all);
      else callback(null, addresses[0] ?? '', 4);
    };
  };
  const resolve = (policy: UrlPolicy, addresses: readonly string[], host = 'x.example') =>
    new Promise<unknown>((done) => {
      policy.guard(found(addresses))(host, { all: true }, (error, address) =>
        done(error ?? address),
      );
    });

  test('refuses a name that resolves to a private address, also beside public ones', async () => {
    for (const addresses of [['127.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['::ffff:169.254.169.254']]) {
      const error = await resolve(closed, addresses);
      assert.ok(isRolloutError(error, 'CALLBACK_URL_REFUSED'), String(error));
    }
    const one = await new Promise((done) => {
      closed.guard(found(['127.0.0.1']))('x.example', {}, (error) => done(error));
    });
    assert.ok(isRolloutError(one, 'CALLBACK_URL_REFUSED'));
  });

  test('lets public addresses through, and all where private ones are allowed', async () => {
    assert.ok(Array.isArray(await resolve(closed, ['8.8.8.8', '2606:4700::1'])));
    assert.ok(Array.isArray(await resolve(open, ['127.0.0.1'])));
  });

  test('a name in the list is looked at as well; an address of this host in the list was meant', async () => {
    const policy = new UrlPolicy({
      allow: ['http://x.example', 'http://localhost:9'],
      privateAddresses: 'deny',
    });
    assert.ok(isRolloutError(await resolve(policy, ['127.0.0.1'])));
    assert.ok(Array.isArray(await resolve(policy, ['127.0.0.1'], 'localhost')));
    assert.equal(policy.problem('http://localhost:9/x'), null);
  });
});
