import { RolloutError } from '../../core/errors.ts';

/** Files and folders of one copy. */
export const maxEntries = 1_000_000;
/** A folder costs two descriptors while what lies in it is copied: whoever nests deeper wants to use them all up. */
const maxDepth = 200;
/** A path must still have a name on the host, below a folder of ours: the system takes 4096 bytes. */
const maxPathBytes = 2048;

/** TRANSFER_FAILED for an entry, by its path relative to the copied folder, that is nested too deeply or could not be named on the host. */
export function refuseUnreachable(path: string): void {
  if (path.length * 3 > maxPathBytes && Buffer.byteLength(path) > maxPathBytes)
    throw tooMany(`holds a path of more than ${maxPathBytes} bytes`);
  if (path.length >= 2 * maxDepth && path.split('/', maxDepth + 1).length > maxDepth)
    throw tooMany(`is nested deeper than ${maxDepth} folders`);
}

export function tooMany(how: string): RolloutError {
  return new RolloutError('TRANSFER_FAILED', `the folder ${how}`, {
    phase: 'environment',
    retryable: false,
    remedy: 'Publish less, for example as one archive.',
  });
}
