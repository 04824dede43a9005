/**
 * Unpacks one layer into a folder in the form in which the kernel's overlay reads it. tar writes below the folder only (it drops
 * `..`, absolute names and links that lead out while it extracts); the digest of the uncompressed bytes is checked on the way.
 */
import { createHash } from 'node:crypto';
import { PassThrough, Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { RolloutError } from '../../../core/errors.ts';
import { runHostCommand } from '../host-command.ts';
import { convertWhiteouts } from './whiteouts.ts';

export interface LayerSource {
  /** `sha256:…` of the uncompressed tar stream. */
  readonly diffId: string;
  readonly open: () => Promise<Readable>;
}

/** `dir` exists and is empty. Resolves with the size of the uncompressed tar stream. Rejects with IMAGE_INVALID or DISK_FULL; the folder is then to be thrown away. */
export async function unpackLayer(
  layer: LayerSource,
  dir: string,
  signal: AbortSignal,
): Promise<number> {
  const hash = createHash('sha256');
  let size = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done): void {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  const plain = new PassThrough();
  const source = await uncompressed(await layer.open());
  const reading = pipeline(source, counted, plain, { signal });
  const isRoot = process.getuid?.() === 0;
  const extracting = runHostCommand(
    { file: 'tar', args: [...tarArguments(isRoot), `--directory=${dir}`], input: plain },
    signal,
  ).finally(() => plain.resume()); // bytes behind the end of the archive belong to the digest
  const [read, extracted] = await Promise.allSettled([reading, extracting]);
  signal.throwIfAborted();
  // tar's complaint about a stream that broke off is only the consequence.
  if (read.status === 'rejected') throw invalid(layer.diffId, 'cannot be read', read.reason);
  if (extracted.status === 'rejected') throw extracted.reason;
  if (extracted.value.exitCode !== 0) throw tarFailed(layer.diffId, extracted.value.stderr);
  const digest = `sha256:${hash.digest('hex')}`;
  if (digest !== layer.diffId) throw invalid(layer.diffId, `has the digest ${digest}`);
  await convertWhiteouts(dir, signal);
  return size;
}

/** A user who is not root owns all files, and cannot make devices. Extended attributes other than capabilities and `user.` could steer the overlay itself, so they are not taken over. */
function tarArguments(isRoot: boolean): readonly string[] {
  const common = ['--extract', '--file=-', '--preserve-permissions', '--delay-directory-restore'];
  if (!isRoot) return [...common, '--no-same-owner', '--exclude=dev/*', '--exclude=./dev/*'];
  return [
    ...common,
    '--same-owner',
    '--numeric-owner',
    '--xattrs',
    '--xattrs-include=security.capability',
    '--xattrs-include=user.*',
  ];
}

/** By the first bytes, since media types of archives are not to be relied upon. */
async function uncompressed(stream: Readable): Promise<Readable> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  const first = await chunks.next();
  const whole = Readable.from(again(first, chunks), { objectMode: false });
  const head = first.done === true ? Buffer.alloc(0) : first.value;
  const magic = head.length >= 4 ? head.readUInt32BE(0) : 0;
  const decoder =
    magic >>> 16 === 0x1f8b ? createGunzip() : magic === 0x28b52ffd ? createZstdDecompress() : null;
  if (decoder === null) return whole;
  whole.on('error', (error) => decoder.destroy(error));
  return whole.pipe(decoder);
}

async function* again(
  first: IteratorResult<Buffer, undefined>,
  rest: AsyncIterator<Buffer, undefined>,
): AsyncGenerator<Buffer> {
  for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
}

function tarFailed(diffId: string, stderr: string): RolloutError {
  if (stderr.includes('No space left on device'))
    return new RolloutError('DISK_FULL', 'no space left to unpack an image', {
      phase: 'environment',
      remedy: 'Free disk space under the cache folder, or move it.',
    });
  return invalid(diffId, `cannot be unpacked: ${stderr.trim().split('\n').slice(-3).join('; ')}`);
}

function invalid(diffId: string, why: string, cause?: unknown): RolloutError {
  return new RolloutError('IMAGE_INVALID', `the layer ${diffId.slice(0, 19)} ${why}`, {
    phase: 'environment',
    cause,
    remedy: 'Build or save the image again.',
  });
}
