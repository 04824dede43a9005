/**
 * The head of a request as nearly every agent sends it, read from the bytes of a connection. Whatever is not plainly such a one is for `node:http`, which serves or
 * refuses it: nothing is refused here, so that there is one reader of what is strange.
 */
import { headLimitBytes, headLines, lengthOf, type HeaderList } from '../upstream/message-head.ts';
import { SaidHead } from './said-head.ts';

export interface RawHead {
  readonly said: SaidHead;
  /** Of the body. */
  readonly length: number;
  /** The client keeps the connection. */
  readonly isKept: boolean;
  /** Where the body begins. */
  readonly size: number;
}

/** A head around the digits of its length. */
interface KnownHead {
  readonly before: Buffer;
  readonly after: Buffer;
  readonly head: RawHead;
}

const firstLine = /^POST (\/[!-~]*) HTTP\/1\.1$/;
const mostHeaders = 100;
const mostDigits = 15;

/** The heads of one connection. One that differs from the one before in the length of its body alone is not read again. */
export class RawHeads {
  #known: KnownHead | null = null;

  /** null = not all of it is here, or it is for `node:http`. */
  read(bytes: Buffer): RawHead | null {
    const again = this.#known === null ? null : sameHead(bytes, this.#known);
    if (again !== null) return again;
    const head = rawHead(bytes);
    this.#known = head === null ? null : knownHead(bytes, head);
    return head;
  }
}

/** null = it is another one, or not all of it is here. */
function sameHead(bytes: Buffer, { before, after, head }: KnownHead): RawHead | null {
  if (!holds(bytes, before, 0)) return null;
  let length = 0;
  let at = before.length;
  for (; at < bytes.length; at += 1) {
    const digit = (bytes[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) break;
    length = 10 * length + digit;
  }
  const digits = at - before.length;
  if (digits === 0 || digits > mostDigits || !holds(bytes, after, at)) return null;
  const { said, isKept } = head;
  return { said, length, isKept, size: at + after.length };
}

function holds(bytes: Buffer, part: Buffer, at: number): boolean {
  const end = at + part.length;
  return end <= bytes.length && bytes.compare(part, 0, part.length, at, end) === 0;
}

function knownHead(bytes: Buffer, head: RawHead): KnownHead | null {
  const text = bytes.toString('latin1', 0, head.size);
  const found = /\r\ncontent-length:[ \t]*(\d+)/di.exec(text)?.indices?.[1];
  if (found === undefined) return null;
  // Of their own: the bytes of a connection belong to larger buffers.
  return {
    before: Buffer.from(text.slice(0, found[0]), 'latin1'),
    after: Buffer.from(text.slice(found[1]), 'latin1'),
    head,
  };
}

function rawHead(bytes: Buffer): RawHead | null {
  // `POS`
  if (bytes[0] !== 0x50 || bytes[1] !== 0x4f || bytes[2] !== 0x53) return null;
  const end = bytes.indexOf('\r\n\r\n', 0, 'latin1');
  if (end === -1 || end > headLimitBytes) return null;
  const lines = headLines(bytes.toString('latin1', 0, end));
  const url = lines === null ? undefined : firstLine.exec(lines.first)?.[1];
  if (lines === null || url === undefined || lines.headers.length > 2 * mostHeaders) return null;
  const said = plainHeaders(lines.headers);
  const length = lengthOf(said?.length ?? '');
  if (said === null || length === null || said.host === undefined) return null;
  const { authorization, apiKey, userAgent = null, connection } = said;
  return {
    said: new SaidHead({
      ...{ url, rawHeaders: lines.headers, userAgent },
      headers: {
        ...(authorization !== undefined && { authorization }),
        ...(apiKey !== undefined && { 'x-api-key': apiKey }),
      },
    }),
    ...{ length, size: end + 4, isKept: connection !== 'close' },
  };
}

const named = {
  authorization: 'authorization',
  connection: 'connection',
  'content-length': 'length',
  host: 'host',
  'user-agent': 'userAgent',
  'x-api-key': 'apiKey',
} as const;

type Said = Partial<Record<(typeof named)[keyof typeof named], string>>;

/** Each says that more is to be known of the request, or of how its body is framed. */
const strange = new Set([
  'content-encoding',
  'expect',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** null = one of them comes twice, or a strange one at all. */
function plainHeaders(headers: HeaderList): Said | null {
  const said: Said = {};
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = (headers[index] ?? '').toLowerCase();
    if (strange.has(name)) return null;
    if (!Object.hasOwn(named, name)) continue;
    const key = named[name as keyof typeof named];
    const value = headers[index + 1] ?? '';
    if (said[key] !== undefined) return null;
    said[key] = key === 'connection' ? value.toLowerCase() : value;
  }
  const { connection = 'keep-alive' } = said;
  return connection === 'keep-alive' || connection === 'close' ? said : null;
}
