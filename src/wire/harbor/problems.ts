import { z } from 'zod';

/** One thing that is wrong with a document. */
export interface DocumentProblem {
  /** Dotted path: `environment.cpus`, `steps[0].verifier.timeout_sec`; empty = the document as a whole. */
  readonly field: string;
  readonly message: string;
}

/** Dotted path of a field; list positions in brackets, keys that are no plain words quoted. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    const key = String(part);
    const word = /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
    return text === '' ? word : `${text}.${word}`;
  }, '');
}

/** Parses a document; on failure every problem found, in the order of the schema. */
export function parseDocument<T extends z.ZodType>(
  schema: T,
  document: unknown,
): { readonly value: z.output<T> } | { readonly problems: readonly DocumentProblem[] } {
  const result = schema.safeParse(document, {
    error: (issue) => (issue.input === undefined ? 'is required' : undefined),
  });
  if (result.success) return { value: result.data };
  return {
    problems: result.error.issues.map(({ path, message }) => ({
      field: fieldPath(path),
      message: message.replace(/^Invalid input: /, ''),
    })),
  };
}
