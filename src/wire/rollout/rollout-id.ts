import { z } from 'zod';

/** Bytes of UTF-8: a folder name can hold any id. */
export const rolloutIdMaxBytes = 256;

/** Why `id` cannot name a rollout: it must be one plain path segment; null = it can. */
export function rolloutIdProblem(id: string): string | null {
  if (id === '') return 'must not be empty';
  if (id === '.' || id === '..') return 'must not be a relative folder';
  if (/[/\\]/.test(id)) return 'must be a single path segment: no slash, no backslash';
  if (/[\u0000-\u001f\u007f]/.test(id)) return 'must not hold control characters';
  // Halves of a surrogate pair all become one replacement character in UTF-8: different ids would be one in a file.
  if (!id.isWellFormed()) return 'must be well-formed Unicode';
  if (Buffer.byteLength(id) > rolloutIdMaxBytes)
    return `must not be longer than ${rolloutIdMaxBytes} bytes`;
  return null;
}

export const rolloutIdSchema = z.string().superRefine((id, problems) => {
  const message = rolloutIdProblem(id);
  if (message !== null) problems.addIssue({ code: 'custom', message: `rollout_id ${message}` });
});
