/** An error as plain data, for the way between threads: a typed one keeps all that others branch on, and of its cause the text. */
import { messageOf, RolloutError, type ErrorCode, type Phase } from './errors.ts';

export type ErrorFault =
  | {
      readonly kind: 'typed';
      readonly code: ErrorCode;
      readonly message: string;
      readonly phase: Phase;
      readonly field: string | null;
      readonly remedy: string | null;
      readonly detail: string | null;
      readonly retryable: boolean;
      readonly exceptionType: string;
      /** null = none. */
      readonly cause: string | null;
    }
  | {
      readonly kind: 'other';
      readonly name: string;
      readonly message: string;
      readonly stack: string;
    };

export function faultOf(error: unknown): ErrorFault {
  if (error instanceof RolloutError) {
    const { code, message, phase, field, remedy, detail, retryable, exceptionType } = error;
    const cause = error.cause === undefined ? null : messageOf(error.cause);
    return {
      ...{ kind: 'typed', code, message, phase, field, remedy, detail, retryable },
      ...{ exceptionType, cause },
    };
  }
  if (error instanceof Error)
    return {
      kind: 'other',
      name: error.name,
      message: error.message,
      stack: error.stack ?? '',
    };
  return { kind: 'other', name: 'Error', message: String(error), stack: '' };
}

export function errorOf(fault: ErrorFault): Error {
  if (fault.kind === 'typed') {
    const { code, message, phase, field, remedy, detail, retryable, exceptionType, cause } = fault;
    return new RolloutError(code, message, {
      ...{ phase, retryable, exceptionType },
      ...(cause !== null && { cause: new Error(cause) }),
      ...(field !== null && { field }),
      ...(remedy !== null && { remedy }),
      ...(detail !== null && { detail }),
    });
  }
  const error = new Error(fault.message);
  error.name = fault.name;
  if (fault.stack !== '') error.stack = fault.stack;
  return error;
}
