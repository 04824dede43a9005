/**
 * Build contexts in the service's object storage: one tar under `<organisation>/<hash>/context.tar`, as its own clients put it there, by the S3 protocol
 * with a signature of version 4 over headers only. Whoever has put it there before has saved the upload.
 */
import { createHash, createHmac } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { createWriteStream } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { packDir } from '../../shared/safe-tar.ts';
import type { ApiClient } from '../api/api-client.ts';
import { isStatus } from '../api/api-error.ts';
import { pushAccess, type PushAccess } from '../api/answers.ts';

const uploadLimitMs = 1_800_000;
const unsignedBody = 'UNSIGNED-PAYLOAD';

/** Uploads a context unless it is there; `hash` names its content. Rejects with `ApiError`. */
export async function storeContext(
  api: ApiClient,
  context: { readonly folder: string; readonly hash: string },
  signal: AbortSignal,
): Promise<void> {
  const access = pushAccess.parse(
    await api.json({ method: 'GET', url: '/object-storage/push-access', signal }),
  );
  const key = `${access.organizationId}/${context.hash}/context.tar`;
  if (await exists(api, access, { key, signal })) return;
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-context-'));
  try {
    const file = path.join(folder, 'context.tar');
    await pipeline(packDir(context.folder), createWriteStream(file), { signal });
    const { size } = await stat(file);
    await api.json({
      method: 'PUT',
      url: urlOf(access, key).href,
      headers: { ...signed(access, 'PUT', key), 'content-length': String(size) },
      body: () => createReadStream(file),
      signal,
      limitMs: uploadLimitMs,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function exists(
  api: ApiClient,
  access: PushAccess,
  asked: { readonly key: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const url = urlOf(access, '');
  const query = { 'list-type': '2', 'max-keys': '1', prefix: asked.key };
  const headers = signed(access, 'GET', '', query);
  try {
    const answer = await api.stream({
      method: 'GET',
      url: url.href,
      query,
      headers,
      signal: asked.signal,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks).toString('utf8').includes(`<Key>${asked.key}</Key>`);
  } catch (error) {
    if (isStatus(error, 404)) return false;
    throw error;
  }
}

function urlOf(access: PushAccess, key: string): URL {
  return new URL(`${access.storageUrl.replace(/\/+$/, '')}/${access.bucket}/${key}`);
}

/** Headers of a request with its signature; they replace those of the API. */
function signed(
  access: PushAccess,
  method: string,
  key: string,
  query: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const url = urlOf(access, key);
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const scope = `${time.slice(0, 8)}/${access.region}/s3/aws4_request`;
  const headers: Record<string, string> = {
    host: url.host,
    'x-amz-content-sha256': unsignedBody,
    'x-amz-date': time,
    'x-amz-security-token': access.sessionToken,
  };
  const names = Object.keys(headers).sort();
  const canonical = [
    method,
    url.pathname,
    Object.entries(query)
      .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
      .sort()
      .join('&'),
    ...names.map((name) => `${name}:${headers[name]}`),
    '',
    names.join(';'),
    unsignedBody,
  ].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const key4 = [...scope.split('/')].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${access.secret}`,
  );
  const signature = createHmac('sha256', key4).update(toSign).digest('hex');
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${access.accessKey}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
