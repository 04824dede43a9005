import { faultOf as plainFaultOf, type ErrorFault } from '../../core/error-fault.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';

/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const damaged = new Set([11, 26]);
/** SQLITE_FULL. */
const full = 13;
/** SQLITE_ERROR, _INTERNAL, _CONSTRAINT, _MISMATCH, _MISUSE, _RANGE: a statement of ours is wrong, and is as wrong when it is tried again. */
const defects = new Set([1, 2, 19, 20, 21, 25]);
/** Codes of the file system that mean the same as `full`. */
const noSpace = new Set(['ENOSPC', 'EDQUOT']);

/** A failure as it travels from the worker. Retryable: what keeps the file from being written is outside of us. */
export function faultOf(error: unknown): ErrorFault {
  return plainFaultOf(isRolloutError(error) ? error : storeError(error));
}

function storeError(error: unknown): RolloutError {
  const { errcode, code } = error as { errcode?: unknown; code?: unknown };
  const result = typeof errcode === 'number' ? errcode & 0xff : 0;
  const system = typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : null;
  const message = `store: ${messageOf(error)}`;
  if (result === full || (system !== null && noSpace.has(system)))
    return new RolloutError('DISK_FULL', message, {
      phase: 'server',
      remedy: 'Free disk space in the data folder.',
    });
  return new RolloutError('STORE_FAILED', message, {
    phase: 'server',
    retryable: system !== null || (result !== 0 && !defects.has(result)),
    ...(damaged.has(result) && {
      remedy: 'Stop the server and put a backup in the place of store.sqlite.',
    }),
  });
}
