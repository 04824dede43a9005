import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AnswerHead } from '../../../src/gateway/upstream/answer-head.ts';
import { AnswerReader } from '../../../src/gateway/upstream/answer-reader.ts';
import { UpstreamError } from '../../../src/gateway/upstream/upstream-error.ts';
import { RandomDraws } from '../proof/random-draws.ts';

interface Reading {
  readonly heads: AnswerHead[];
  readonly body: string;
  readonly isDone: boolean;
  readonly keptMs: number;
}

/** Reads what comes in these pieces, and then the end where `closes`. */
function read(pieces: readonly Buffer[], closes = false): Reading {
  const heads: AnswerHead[] = [];
  const bodies: Buffer[] = [];
  const reader = new AnswerReader({
    head: (head) => heads.push(head),
    piece: (bytes) => {
      assert.notEqual(bytes.length, 0);
      assert.equal(heads.length, 1, 'the body comes behind the head');
      bodies.push(Buffer.from(bytes));
    },
  });
  for (const piece of pieces) if (piece.length > 0) reader.push(piece);
  if (closes) reader.end();
  const { isDone, keptMs } = reader;
  return { heads, body: Buffer.concat(bodies).toString('latin1'), isDone, keptMs };
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const whole = (text: string, closes = false): Reading => read([bytes(text)], closes);
const forever = Number.POSITIVE_INFINITY;

describe('an answer', { timeout: 60_000 }, () => {
  const ends = [
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', 'abc', forever],
    ['no reason', 'HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabc', 'abc', forever],
    ['an empty body', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', '', forever],
    [
      'chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n1;x="y"\r\nc\r\n0\r\nT: v\r\n\r\n',
      'abc',
      forever,
    ],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', '', forever],
    ['no body, whatever its length', 'HTTP/1.1 304 x\r\ncontent-length: 9\r\n\r\n', '', forever],
    [
      'what the upstream says of how long it waits, less a second',
      'HTTP/1.1 200 OK\r\nKeep-Alive: max=5, timeout=3\r\nContent-Length: 1\r\n\r\nx',
      'x',
      2_000,
    ],
    [
      'an upstream that does not keep it',
      'HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\nx',
      'x',
      0,
    ],
    ['an old upstream', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', 'x', 0],
    [
      'heads that come before it',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nlink: y\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx',
      'x',
      forever,
    ],
  ] as const;
  for (const [name, text, body, keptMs] of ends)
    it(`with ${name} ends where it says`, () => {
      const reading = whole(text);
      assert.equal(reading.heads.length, 1);
      assert.deepEqual([reading.body, reading.isDone, reading.keptMs], [body, true, keptMs]);
    });

  it('without a length ends where the connection does, which is used no more', () => {
    const text = 'HTTP/1.1 200 OK\r\n\r\nabc';
    assert.equal(whole(text).isDone, false);
    const reading = whole(text, true);
    assert.deepEqual([reading.body, reading.isDone, reading.keptMs], ['abc', true, 0]);
  });

  it('with more behind its end is read to its end, and the connection is used no more', () => {
    const smuggled = 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!';
    for (const text of [
      `HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx${smuggled}`,
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n${smuggled}`,
      `HTTP/1.1 204 x\r\n\r\n${smuggled}`,
    ])
      for (const cut of [text.length, text.length - smuggled.length]) {
        const reading = read([bytes(text.slice(0, cut)), bytes(text.slice(cut))]);
        assert.equal(reading.heads.length, 1);
        assert.ok(['x', ''].includes(reading.body));
        assert.deepEqual([reading.isDone, reading.keptMs], [true, 0]);
      }
  });

  it('tells names in lower case, values without the blanks around them, and every one of several', () => {
    const { headers } = whole(
      'HTTP/1.1 200 OK\r\nX-A: \t 1 \r\nX-A:2\r\nContent-Type:\r\ncontent-length: 0\r\n\r\n',
    ).heads[0]!;
    assert.deepEqual(headers, [
      ...['x-a', '1', 'x-a', '2', 'content-type', '', 'content-length', '0'],
    ]);
  });
});

describe('what is no answer is refused:', { timeout: 60_000 }, () => {
  const head = (lines: string): string => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`;
  const chunked = (body: string): string => head('transfer-encoding: chunked') + body;
  const rows: readonly (readonly [string, string])[] = [
    ['a length and chunks', head('content-length: 3\r\ntransfer-encoding: chunked')],
    ['chunks and a length', head('transfer-encoding: chunked\r\ncontent-length: 3')],
    ['two lengths', head('content-length: 3\r\ncontent-length: 4')],
    ['the same length twice', head('content-length: 3\r\ncontent-length: 3')],
    ['a list of lengths', head('content-length: 3, 3')],
    ['a negative length', head('content-length: -1')],
    ['a length with a sign', head('content-length: +1')],
    ['a length in another base', head('content-length: 0x10')],
    ['an empty length', head('content-length:')],
    ['a length beyond counting', head('content-length: 99999999999999999999')],
    ['another coding', head('transfer-encoding: gzip')],
    ['a list of codings', head('transfer-encoding: gzip, chunked')],
    ['the coding twice', head('transfer-encoding: chunked\r\ntransfer-encoding: chunked')],
    ['a coding of its own spelling', head('transfer-encoding: \u000bchunked')],
    ['chunks of an old upstream', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['a folded line', head('x-a: 1\r\n b: 2')],
    ['a space before the colon', head('x-a : 1')],
    ['a line without a colon', head('x-a')],
    ['a line without a name', head(': 1')],
    ['a zero byte', head('x-a: \u0000')],
    ['a lone CR', head('x-a: 1\rcontent-length: 3')],
    ['a lone LF', head('x-a: 1\ncontent-length: 3')],
    ['another protocol', 'HTTP/2 200 OK\r\n\r\n'],
    ['a switch of protocols', 'HTTP/1.1 101 x\r\nupgrade: x\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['no status', '<html></html>\r\n\r\n'],
    ['an empty first line', '\r\nHTTP/1.1 200 OK\r\n\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(17_000)}`],
    ['a huge head', head(`x-a: ${'a'.repeat(17_000)}`)],
    ['interim heads without end', 'HTTP/1.1 100 x\r\n\r\n'.repeat(20)],
    ['a chunk without a size', chunked('\r\nabc\r\n')],
    ['a size that is none', chunked('x\r\nabc\r\n')],
    ['a size with a sign', chunked('-1\r\nabc\r\n')],
    ['a size in another spelling', chunked('0x3\r\nabc\r\n')],
    ['a size with a space before it', chunked(' 3\r\nabc\r\n')],
    ['a size beyond counting', chunked('fffffffffffffffff\r\n')],
    ['a size line ending in LF', chunked('3\nabc\r\n')],
    ['a chunk longer than its size', chunked('2\r\nabc\r\n0\r\n\r\n')],
    ['a chunk ending in LF', chunked('3\r\nabc\n0\r\n\r\n')],
    ['a size line without end', chunked(`1;${'a'.repeat(2_000)}`)],
    ['an extension with a CR', chunked('1;a\rb\r\nx\r\n')],
    ['trailers without end', chunked(`0\r\n${'a: b\r\n'.repeat(5_000)}`)],
    ['a trailer that is no header', chunked('0\r\nGET / HTTP/1.1\r\n\r\n')],
  ];
  for (const [name, text] of rows)
    it(name, () => {
      const refused = (error: unknown): boolean =>
        error instanceof UpstreamError && error.code === 'INVALID_ANSWER';
      assert.throws(() => whole(text), refused);
      assert.throws(() => read([...bytes(text)].map((byte) => Buffer.from([byte]))), refused);
    });

  const broken = [
    'HTTP/1.1 200 OK\r\ncontent-le',
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n',
    'HTTP/1.1 100 x\r\n\r\n',
  ];
  for (const text of broken)
    it(`an end too soon: ${JSON.stringify(text.slice(-20))}`, () => {
      assert.throws(
        () => whole(text, true),
        (error: unknown) => error instanceof UpstreamError && error.code === 'CONNECTION_CLOSED',
      );
    });
});

describe('answers cut anywhere', { timeout: 60_000 }, () => {
  it('are the same as whole ones', () => {
    const draws = new RandomDraws(20_261);
    for (let index = 0; index < 2_000; index += 1) {
      const body = 'abc\r\n0\n'.repeat(draws.below(40)).slice(0, draws.below(200));
      const interim = draws.chance(0.2) ? 'HTTP/1.1 102 x\r\n\r\n' : '';
      const isChunked = draws.chance(0.6);
      const framing = isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
      const sent = `${interim}HTTP/1.1 200 OK\r\n${framing}\r\nx-a: ${'y'.repeat(draws.below(50))}\r\n\r\n`;
      const text = sent + (isChunked ? inChunks(body, draws) : body);
      const pieces: Buffer[] = [];
      for (let at = 0; at < text.length;) {
        const to = Math.min(text.length, at + 1 + draws.below(draws.pick([1, 5, 60])));
        pieces.push(bytes(text.slice(at, to)));
        at = to;
      }
      const reading = read(pieces);
      const { heads, ...rest } = reading;
      assert.deepEqual(rest, { body, isDone: true, keptMs: forever });
      assert.equal(heads.length, 1);
    }
  });

  it('and with a byte of their frame changed are refused, or end, and never bring more than they hold', () => {
    const draws = new RandomDraws(7);
    const text = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${inChunks('secret '.repeat(9), draws)}`;
    for (let index = 0; index < 3_000; index += 1) {
      const damaged = bytes(text);
      damaged[draws.below(damaged.length)] = draws.below(256);
      try {
        const { body } = read([damaged.subarray(0, 70), damaged.subarray(70)]);
        assert.ok(body.length <= text.length);
      } catch (error) {
        assert.ok(error instanceof UpstreamError, String(error));
      }
    }
  });
});

function inChunks(body: string, draws: RandomDraws): string {
  let text = '';
  for (let at = 0; at < body.length;) {
    const to = Math.min(body.length, at + 1 + draws.below(30));
    const size = (to - at).toString(16);
    const extension = draws.pick(['', ';a', ' ; a=b']);
    text += `${draws.chance(0.5) ? size.toUpperCase() : `0${size}`}${extension}\r\n${body.slice(at, to)}\r\n`;
    at = to;
  }
  return `${text}0\r\n${draws.chance(0.3) ? 'x-t: 1\r\n' : ''}\r\n`;
}
