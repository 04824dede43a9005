import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { FileDocument } from '../../wire/api/file.ts';
import { operations } from '../../wire/api/operations.ts';
import { readRange } from '../byte-range.ts';
import type { RolloutFiles } from '../ports.ts';
import { Refusal } from '../refusal.ts';
import { addRoute, parameter, type Call, type Routing } from '../route.ts';
import { viewOf } from './rollouts.ts';

type KeptFile = Awaited<ReturnType<RolloutFiles['list']>>[number];

/** What the archive keeps of a rollout. */
export function addFileRoutes(routing: Routing): void {
  const { files } = routing.parts;
  addRoute(routing, operations.listFiles, async (call) => {
    const { rollout } = await viewOf(routing, call);
    const kept = await files.list(rollout.id);
    return { rollout_id: rollout.id, files: kept.map(fileDocumentOf) };
  });
  addRoute(routing, operations.downloadFile, async (call) => {
    const { rollout } = await viewOf(routing, call);
    const path = parameter(call, '*');
    if (!isPlainPath(path)) throw new Refusal(404, 'Not Found');
    const kept = await files.list(rollout.id);
    const file = kept.find((candidate) => candidate.path === path);
    const place = file === undefined ? null : await files.locate(rollout.id, path);
    if (file === undefined || place === null) throw new Refusal(404, 'Not Found');
    return await sendFile(call, { file, place });
  });
}

export interface FileToSend {
  readonly file: KeptFile;
  /** Where it is on this host. */
  readonly place: string;
  readonly type?: string;
}

function fileDocumentOf({ path, sizeBytes, sha256, modifiedAt }: KeptFile): FileDocument {
  return { path, size_bytes: sizeBytes, sha256, modified_at: modifiedAt.toISOString() };
}

/** The path is decoded once by now: what still looks like a way out is one. */
function isPlainPath(path: string): boolean {
  return (
    !/[\\\u0000]/.test(path) &&
    path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

/** A file, or what is asked of it: a range, or nothing where the caller has it. */
export async function sendFile(
  { request, reply }: Call,
  { file, place, type = 'application/octet-stream' }: FileToSend,
): Promise<unknown> {
  const etag = `"${file.sha256}"`;
  const about = {
    etag,
    'accept-ranges': 'bytes',
    'content-disposition': 'attachment',
    'cache-control': 'private, no-cache',
  };
  reply.headers(about);
  if (listsTag(request.headers['if-none-match'], etag)) return await reply.status(304).send();
  const condition = request.headers['if-range'];
  const header = condition === undefined || condition === etag ? request.headers.range : undefined;
  const range = readRange(header, file.sizeBytes);
  if (range.kind === 'unsatisfiable')
    throw new Refusal(416, 'the file has no such range', {
      'content-range': `bytes */${file.sizeBytes}`,
    });
  const first = range.kind === 'part' ? range.first : 0;
  const last = range.kind === 'part' ? range.last : file.sizeBytes - 1;
  const isBodyless = last < first || request.method === 'HEAD';
  const handle = isBodyless ? null : await openPlace(place);
  if (!isBodyless && handle === null) {
    for (const name of Object.keys(about)) reply.removeHeader(name);
    throw new Refusal(404, 'Not Found');
  }
  if (range.kind === 'part')
    reply.status(206).header('content-range', `bytes ${first}-${last}/${file.sizeBytes}`);
  reply.type(type).header('content-length', last - first + 1);
  if (handle === null) return last < first ? '' : Readable.from([]);
  return handle.createReadStream({ start: first, end: last });
}

/** null = it has been removed, or has become a link, since it was looked at. */
async function openPlace(place: string): Promise<FileHandle | null> {
  try {
    return await open(place, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return null;
    throw error;
  }
}

function listsTag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').some((tag) => [etag, `W/${etag}`, '*'].includes(tag.trim()));
}
