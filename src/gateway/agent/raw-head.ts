/**
 * The head of a request as nearly every agent sends it, read from the bytes of a connection. Whatever is not plainly such a one is for `node:http`, which serves or
 * refuses it: nothing is refused here, so that there is one reader of what is strange.
 */
import { headLimitBytes, headLines, lengthOf, type HeaderList } from '../upstream/message-head.ts';

export interface RawHead {
  readonly method: 'POST';
  readonly url: string;
  readonly rawHeaders: HeaderList;
  /** Those that say whose it is. */
  readonly headers: { readonly authorization?: string; readonly 'x-api-key'?: string };
  readonly userAgent: string | null;
  /** Of the body. */
  readonly length: number;
  /** The client keeps the connection. */
  readonly isKept: boolean;
  /** Where the body begins. */
  readonly size: number;
}

const firstLine = /^POST (\/[!-~]*) HTTP\/1\.1$/;
const mostHeaders = 100;

/** null = not all of it is here, or it is for `node:http`. */
export function rawHead(bytes: Buffer): RawHead | null {
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
    ...{ method: 'POST', url, rawHeaders: lines.headers, userAgent, length, size: end + 4 },
    headers: {
      ...(authorization !== undefined && { authorization }),
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    },
    isKept: connection !== 'close',
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
