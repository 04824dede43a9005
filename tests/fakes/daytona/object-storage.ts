/** The service's object storage by the S3 protocol, as far as its clients use it: a look for a prefix, and a put. Signatures are checked. */
import { createHash, createHmac } from 'node:crypto';
import { Refusal, type Exchange } from './http-exchange.ts';

export const storageKeys = {
  accessKey: 'fake-access-key',
  secret: 'fake-secret',
  sessionToken: 'fake-session-token',
  bucket: 'fake-builds',
  region: 'eu-fake-1',
} as const;

export class ObjectStorage {
  readonly objects = new Map<string, Buffer>();

  async serve(exchange: Exchange, path: string): Promise<void> {
    checkSignature(exchange);
    const [bucket = '', ...rest] = path.split('/');
    const key = rest.join('/');
    if (bucket !== storageKeys.bucket) throw new Refusal(404, 'NoSuchBucket');
    if (exchange.method === 'PUT') {
      this.objects.set(key, plainBody(exchange, await exchange.bytes()));
      exchange.response.writeHead(200, { etag: '"fake"' });
      exchange.response.end();
      return;
    }
    const prefix = exchange.url.searchParams.get('prefix') ?? '';
    const keys = [...this.objects.keys()].filter((each) => each.startsWith(prefix)).slice(0, 1);
    const contents = keys.map((each) => `<Contents><Key>${each}</Key><Size>1</Size></Contents>`);
    exchange.response.writeHead(200, { 'content-type': 'application/xml' });
    exchange.response.end(
      `<?xml version="1.0"?><ListBucketResult><Name>${bucket}</Name><Prefix>${prefix}</Prefix><KeyCount>${keys.length}</KeyCount><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`,
    );
  }
}

/** Takes the frames of a signed stream off. */
function plainBody(exchange: Exchange, bytes: Buffer): Buffer {
  const kind = String(exchange.request.headers['x-amz-content-sha256'] ?? '');
  if (!kind.startsWith('STREAMING-')) return bytes;
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (!(size > 0)) return Buffer.concat(pieces);
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

function checkSignature({ method, url, request }: Exchange): void {
  const given = /Credential=([^/]+)\/(\S+?), ?SignedHeaders=(\S+?), ?Signature=(\w+)/.exec(
    request.headers.authorization ?? '',
  );
  if (given === null) throw new Refusal(403, 'AccessDenied');
  const [, accessKey = '', scope = '', names = '', signature = ''] = given;
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&');
  const headers = names
    .split(';')
    .map((name) => `${name}:${String(request.headers[name] ?? '').trim()}\n`);
  const canonical = [
    ...[method, url.pathname, query, headers.join(''), names],
    String(request.headers['x-amz-content-sha256'] ?? ''),
  ].join('\n');
  const text = [
    'AWS4-HMAC-SHA256',
    String(request.headers['x-amz-date'] ?? ''),
    scope,
    hash(canonical),
  ].join('\n');
  const key = scope
    .split('/')
    .reduce<string | Buffer>(
      (secret, part) => createHmac('sha256', secret).update(part).digest(),
      `AWS4${storageKeys.secret}`,
    );
  const expected = createHmac('sha256', key).update(text).digest('hex');
  const isToken = request.headers['x-amz-security-token'] === storageKeys.sessionToken;
  if (accessKey !== storageKeys.accessKey || expected !== signature || !isToken)
    throw new Refusal(403, 'SignatureDoesNotMatch');
}
