import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RawHeads, type RawHead } from '../../../src/gateway/agent/raw-head.ts';

const head = (lines: readonly string[], first = 'POST /v1/chat/completions HTTP/1.1'): Buffer =>
  Buffer.from(`${[first, ...lines].join('\r\n')}\r\n\r\n`, 'latin1');
const rawHead = (bytes: Buffer): RawHead | null => new RawHeads().read(bytes);
const usual = ['Host: x', 'Content-Length: 2'];

describe('the head of a request', () => {
  it('as agents send it is read, with what says whose it is', () => {
    const bytes = head([
      ...[...usual, 'authorization: Bearer k', 'X-Api-Key: k', 'User-Agent: a/1'],
      ...['Connection: Keep-Alive', 'x-stainless-arch: x64', 'x-stainless-arch: twice'],
    ]);
    const read = rawHead(Buffer.concat([bytes, Buffer.from('{}')]));
    assert.deepEqual(
      [read?.said.call, read?.said.userAgent, read?.length, read?.isKept, read?.size],
      [
        { target: { kind: 'relay', suffix: '/chat/completions' }, method: 'POST', key: 'k' },
        'a/1',
        ...[2, true, bytes.length],
      ],
    );
    assert.deepEqual(read?.said.rawHeaders.slice(-4), [
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

describe('the heads of one connection', () => {
  const agent = ['Host: x', 'Authorization: Bearer k', 'Content-Length: 9', 'X-Last: y'];
  const said = (lines: readonly string[], first?: string): Buffer =>
    Buffer.concat([head(lines, first), Buffer.from('{"a":1}  ')]);

  it('that differ in their length alone are one, read once', () => {
    const heads = new RawHeads();
    const one = heads.read(said(agent));
    for (const length of [9, 1, 12_345, 999_999_999_999_999]) {
      const lines = agent.map((line) => line.replace('9', String(length)));
      const next = heads.read(said(lines));
      assert.deepEqual(next, { ...one, length, size: head(lines).length });
      assert.equal(next.said, one?.said);
    }
  });

  const others: readonly (readonly [string, Buffer])[] = [
    ['another key', said(agent.map((line) => line.replace('Bearer k', 'Bearer q')))],
    ['no key', said(agent.filter((line) => !line.startsWith('Auth')))],
    ['another path', said(agent, 'POST /v1/chat/completionz HTTP/1.1')],
    ['a header more', said([...agent, 'X-More: z'])],
    ['another one at its end', said([...agent.slice(0, -1), 'X-Last: z'])],
    ['a way to close', said([...agent, 'Connection: close'])],
  ];
  for (const [name, bytes] of others)
    it(`are read again with ${name}`, () => {
      const heads = new RawHeads();
      const one = heads.read(said(agent));
      const alone = rawHead(bytes);
      for (const again of [heads.read(bytes), heads.read(bytes)]) {
        assert.deepEqual([again?.said.rawHeaders, again?.length], [alone?.said.rawHeaders, 9]);
        assert.deepEqual(again?.said.call, alone?.said.call);
        assert.equal(again?.isKept, alone?.isKept);
        assert.notEqual(again?.said, one?.said);
      }
      assert.deepEqual(heads.read(said(agent)), one);
    });

  for (const length of ['', '-1', '9 9', '0x9', '9'.repeat(16)])
    it(`are for node:http with the length ${JSON.stringify(length)}, whatever came before`, () => {
      const heads = new RawHeads();
      heads.read(said(agent));
      const lines = agent.map((line) => line.replace(/: 9$/, `: ${length}`));
      assert.equal(heads.read(said(lines)), null);
    });

  it('are not taken for complete where they break off', () => {
    const heads = new RawHeads();
    const whole = head(agent);
    heads.read(whole);
    for (let end = 0; end < whole.length; end += 1)
      assert.equal(heads.read(whole.subarray(0, end)), null);
  });
});
