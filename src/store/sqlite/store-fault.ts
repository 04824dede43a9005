/**
 * What a failure of SQLite means for whoever called. What cannot be written now may be written later, whatever keeps it from that is outside of us; what cannot
 * be read, or is not what was written, is the same at every try, and so is a statement of ours that is wrong.
 */
import { faultOf as plainFaultOf, type ErrorFault } from '../../core/error-fault.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';

type Meaning = 'later' | 'full' | 'damaged' | 'defect';

/** By result code. Others are ours to wait for: locks, memory, permissions, a disk that does not write (`later`). */
const meanings: Readonly<Partial<Record<number, Meaning>>> = {
  1: 'defect', // ERROR
  2: 'defect', // INTERNAL
  11: 'damaged', // CORRUPT
  12: 'defect', // NOTFOUND
  13: 'full', // FULL
  18: 'defect', // TOOBIG
  19: 'defect', // CONSTRAINT
  20: 'defect', // MISMATCH
  21: 'defect', // MISUSE
  22: 'defect', // NOLFS
  23: 'defect', // AUTH
  25: 'defect', // RANGE
  26: 'damaged', // NOTADB
};

/** By extended result code, where that says more. */
const extendedMeanings: Readonly<Partial<Record<number, Meaning>>> = {
  266: 'damaged', // IOERR_READ
  522: 'damaged', // IOERR_SHORT_READ
  1032: 'damaged', // READONLY_DBMOVED: another file stands in its place, or none
  8202: 'damaged', // IOERR_DATA: a checksum of the file system
  8458: 'damaged', // IOERR_CORRUPTFS
};

/** Codes of the file system that mean the same as `full`. */
const noSpace = new Set(['ENOSPC', 'EDQUOT']);

/** A failure as it travels from the worker. */
export function faultOf(error: unknown): ErrorFault {
  return plainFaultOf(isRolloutError(error) ? error : storeError(error));
}

function storeError(error: unknown): RolloutError {
  const message = `store: ${messageOf(error)}`;
  switch (meaningOf(error)) {
    case 'full':
      return new RolloutError('DISK_FULL', message, {
        phase: 'server',
        remedy: 'Free disk space in the data folder.',
      });
    case 'damaged':
      return new RolloutError('STORE_DAMAGED', message, {
        phase: 'server',
        remedy:
          'Stop the server and put a backup in the place of store.sqlite: docs/store.md, Backup.',
      });
    case 'later':
      return new RolloutError('STORE_FAILED', message, { phase: 'server', retryable: true });
    case 'defect':
      return new RolloutError('STORE_FAILED', message, { phase: 'server' });
  }
}

function meaningOf(error: unknown): Meaning {
  const { errcode, code } = error as { errcode?: unknown; code?: unknown };
  if (typeof errcode === 'number')
    return extendedMeanings[errcode] ?? meanings[errcode & 0xff] ?? 'later';
  const isOfSystem = typeof code === 'string' && /^E[A-Z0-9]+$/.test(code);
  if (!isOfSystem) return 'defect';
  return noSpace.has(code) ? 'full' : 'later';
}
