import { cutText } from '../../core/cut-text.ts';
import type { ThreadFailure } from './thread-messages.ts';

/** The answer of a user's code is not what it may be. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

const maxMessageLength = 4_000;
const validationNames = new Set(['TypeError', 'RangeError', 'AssertionError', 'ZodError']);

/** Errors of time are `timeout`, those of types, values and assertions `validation_error`, all others `agent_error`; nothing that was thrown can throw here. */
export function failureOf(error: unknown): ThreadFailure {
  const kind = error instanceof AnswerError ? 'answer' : 'thrown';
  try {
    const { name, message } = error instanceof Error ? error : { name: '', message: String(error) };
    return {
      kind,
      category: categoryOf(error, name),
      message: cut(message || name || 'no reason'),
    };
  } catch {
    return { kind, category: 'agent_error', message: 'an error that cannot be described' };
  }
}

function categoryOf(error: unknown, name: string): ThreadFailure['category'] {
  if (error instanceof AnswerError) return 'validation_error';
  if (name === 'TimeoutError' || codeOf(error) === 'ETIMEDOUT') return 'timeout';
  return validationNames.has(name) ? 'validation_error' : 'agent_error';
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

function cut(text: string): string {
  const plain = text.toWellFormed();
  return plain.length <= maxMessageLength ? plain : `${cutText(plain, maxMessageLength)}…`;
}
