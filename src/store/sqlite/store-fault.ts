import { isRolloutError, messageOf, RolloutError, type ErrorCode } from '../../core/errors.ts';

/** A failure as it travels from the worker. */
export interface StoreFault {
  readonly code: ErrorCode;
  readonly message: string;
  readonly remedy: string | null;
}

/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const damaged = new Set([11, 26]);
/** SQLITE_FULL. */
const full = 13;
/** Codes of the file system that mean the same. */
const noSpace = new Set(['ENOSPC', 'EDQUOT']);

export function faultOf(error: unknown): StoreFault {
  if (isRolloutError(error))
    return { code: error.code, message: error.message, remedy: error.remedy };
  const { errcode, code } = error as { errcode?: unknown; code?: unknown };
  const result = typeof errcode === 'number' ? errcode & 0xff : 0;
  const message = `store: ${messageOf(error)}`;
  if (result === full || (typeof code === 'string' && noSpace.has(code)))
    return { code: 'DISK_FULL', message, remedy: 'Free disk space in the data folder.' };
  return {
    code: 'STORE_FAILED',
    message,
    remedy: damaged.has(result)
      ? 'Stop the server and put a backup in the place of store.sqlite.'
      : null,
  };
}

export function errorOf({ code, message, remedy }: StoreFault): RolloutError {
  return new RolloutError(code, message, {
    phase: 'server',
    ...(remedy === null ? {} : { remedy }),
  });
}
