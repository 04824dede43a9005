/**
 * Unpacks one layer into a folder in the form in which the kernel's overlay reads it. tar writes below the folder only (it drops
 * `..`, absolute names and links that lead out while it extracts); the digest of the uncompressed bytes is checked on the way.
 */
import { createHash } from 'node:crypto';
import { PassThrough, Transform, type Readable } from 'node:stream';
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
  source: LayerSource,
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
  const reading = pipeline(await uncompressed(await source.open()), counted, plain, { signal });
  const isRoot = process.getuid?.() === 0;
  const extracting = runHostCommand(
    { file: 'tar', args: [...tarArguments(isRoot), `--directory=${dir}`], input: plain },
    signal,
  ).finally(() => plain.resume()); // bytes behind the end of the archive belong to the digest
  const [read, extracted] = await Promise.allSettled([reading, extracting]);
  if (extracted.status === 'rejected') throw extracted.reason;
  if (extracted.value.exitCode !== 0) throw tarFailed(source.diffId, extracted.value.stderr);
  if (read.status === 'rejected') throw invalid(source.diffId, 'cannot be read', read.reason);
  const digest = `sha256:${hash.digest('hex')}`;
  if (digest !== source.diffId) throw invalid(source.diffId, `has the digest ${digest}`);
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

async function uncompressed(stream: Readable): Promise<Readable> {
  const first = await firstChunk(stream);
  if (first !== null) stream.unshift(first);
  const magic = first !== null && first.length >= 4 ? first.readUInt32BE(0) : 0;
  const decoder =
    magic >>> 16 === 0x1f8b ? createGunzip() : magic === 0x28b52ffd ? createZstdDecompress() : null;
  if (decoder === null) return stream;
  stream.on('error', (error) => decoder.destroy(error));
  return stream.pipe(decoder);
}

function firstChunk(stream: Readable): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const tryRead = (): void => {
      const chunk = stream.read() as Buffer | null;
      if (chunk === null) return;
      settle();
      resolve(chunk);
    };
    const onEnd = (): void => {
      settle();
      resolve(null);
    };
    const onError = (error: Error): void => {
      settle();
      reject(error);
    };
    const settle = (): void => {
      stream.off('readable', tryRead).off('end', onEnd).off('error', onError);
    };
    stream.on('readable', tryRead).on('end', onEnd).on('error', onError);
  });
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
