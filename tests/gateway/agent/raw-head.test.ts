import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rawHead } from '../../../src/gateway/agent/raw-head.ts';

const head = (lines: readonly string[], first = 'POST /v1/chat/completions HTTP/1.1'): Buffer =>
  Buffer.from(`${[first, ...lines].join('\r\n')}\r\n\r\n`, 'latin1');
const usual = ['Host: x', 'Content-Length: 2'];

describe('the head of a request', () => {
  it('as agents send it is read, with what says whose it is', () => {
    const bytes = head([
      ...[...usual, 'authorization: Bearer k', 'X-Api-Key: k', 'User-Agent: a/1'],
      ...['Connection: Keep-Alive', 'x-stainless-arch: x64', 'x-stainless-arch: twice'],
    ]);
    const read = rawHead(Buffer.concat([bytes, Buffer.from('{}')]));
    assert.deepEqual(
      [read?.url, read?.headers, read?.userAgent, read?.length, read?.isKept, read?.size],
      [
        ...['/v1/chat/completions', { authorization: 'Bearer k', 'x-api-key': 'k' }, 'a/1'],
        ...[2, true, bytes.length],
      ],
    );
    assert.deepEqual(read?.rawHeaders.slice(-4), [
      ...['x-stainless-arch', 'x64', 'x-stainless-arch', 'twice'],
    ]);
    assert.equal(rawHead(head([...usual, 'connection: close']))?.isKept, false);
  });

  const others: readonly (readonly [string, Buffer])[] = [
    ['another method', head(usual, 'GET /v1/chat/completions HTTP/1.1')],
    ['an old protocol', head(usual, 'POST /v1/chat/completions HTTP/1.0')],
    ['a whole address', head(usual, 'POST http://x/v1/chat/completions HTTP/1.1')],
    ['a second space', head(usual, 'POST  /v1/chat/completions HTTP/1.1')],
    ['letters that are no ASCII in its path', head(usual, 'POST /v1/é HTTP/1.1')],
    ['a head that is not complete', head(usual).subarray(0, -1)],
    ['a head of more than 16 KiB', head([...usual, `x: ${'a'.repeat(17_000)}`])],
    ['more than a hundred headers', head([...usual, ...Array<string>(100).fill('x: y')])],
    ['no length', head(['host: x'])],
    ['two lengths', head([...usual, 'content-length: 2'])],
    ['a length with a sign', head(['host: x', 'content-length: +2'])],
    ['chunks', head(['host: x', 'transfer-encoding: chunked'])],
    ['a length and chunks', head([...usual, 'transfer-encoding: chunked'])],
    ['a length and something like chunks', head([...usual, 'Transfer-Encoding: xchunked'])],
    ['no host', head(['content-length: 2'])],
    ['two hosts', head([...usual, 'host: y'])],
    ['two keys of one kind', head([...usual, 'authorization: a', 'authorization: b'])],
    ['an expectation', head([...usual, 'expect: 100-continue'])],
    ['an upgrade', head([...usual, 'upgrade: websocket'])],
    ['a connection with names', head([...usual, 'connection: keep-alive, x-a'])],
    ['a compressed body', head([...usual, 'content-encoding: gzip'])],
    ['trailers', head([...usual, 'trailer: x'])],
    ['a folded line', head([...usual, 'x: y', ' z'])],
    ['a space before a colon', head([...usual, 'x : y'])],
    ['a lone LF', head([...usual, 'x: y\ntransfer-encoding: chunked'])],
    ['a lone CR', head([...usual, 'x: y\rtransfer-encoding: chunked'])],
    ['a zero byte', head([...usual, 'x: \u0000'])],
    ['a line without a colon', head([...usual, 'x'])],
  ];
  for (const [name, bytes] of others)
    it(`with ${name} is left to node:http`, () => {
      assert.equal(rawHead(bytes), null);
    });
});
