import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { parseEndpoint } from '../../../src/engines/shared/endpoint.ts';

describe('the address of an engine', () => {
  const rows: readonly (readonly [base: string, suffix: string, origin: string, path: string])[] = [
    ['http://h', '/generate', 'http://h', '/generate'],
    ['http://h/', '/generate', 'http://h', '/generate'],
    ['http://h:8000/v1', '/chat/completions', 'http://h:8000', '/v1/chat/completions'],
    ['http://h:8000/v1/', '/chat/completions', 'http://h:8000', '/v1/chat/completions'],
    ['http://h/p%2Fa?x=1', '/chat/completions', 'http://h', '/p%2Fa/chat/completions?x=1'],
    ['http://h?x=1', '/generate', 'http://h', '/generate?x=1'],
    ['http://h/?x=%20&y', '/v1/loads?include=core', 'http://h', '/v1/loads?x=%20&y&include=core'],
    ['http://h/a/../b//c', '/health', 'http://h', '/a/../b//c/health'],
    ['http://h/%7euser;k=v/@me', '/health', 'http://h', '/%7euser;k=v/@me/health'],
    ['HTTPS://[::1]:9/x#part', '/health', 'https://[::1]:9', '/x/health'],
    ['http://u:p@h/x', '/health', 'http://h', '/x/health'],
  ];
  for (const [base, suffix, origin, path] of rows)
    it(`${base} with ${suffix} is ${origin} and ${path}`, () => {
      const endpoint = parseEndpoint(base, null);
      assert.equal(endpoint.origin, origin);
      assert.equal(endpoint.pathTo(suffix), path);
    });

  it('shows neither user, password nor query', () => {
    const endpoint = parseEndpoint('https://me:s%3Acret@host/v1?key=abcdef', null);
    assert.equal(endpoint.url, 'https://host/v1');
    const token = Buffer.from('me:s:cret').toString('base64');
    assert.equal(endpoint.authorization, `Basic ${token}`);
  });

  for (const address of [
    '',
    'h:80',
    'ftp://h',
    'http://',
    'http:///x',
    'http://h/a b',
    'http://h:x',
  ])
    it(`refuses ${JSON.stringify(address)} without repeating it`, () => {
      assert.throws(
        () => parseEndpoint(address, null),
        (error) =>
          isRolloutError(error, 'CONFIG_INVALID') &&
          (address === '' || !error.message.includes(address)),
      );
    });
});
