/** Building blocks of the schema of task.toml. Cross-field checks run also when a field is wrong, so that one reading finds everything. */
import { z } from 'zod';
import { laxInteger } from '../lax.ts';

function isTable(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}

const tableValue = z.custom<Record<string, unknown>>(isTable, 'expected a table');

/** A table that ignores keys it does not know. */
export function table<T extends z.ZodType<unknown, Record<string, unknown>>>(schema: T) {
  return tableValue.pipe(schema);
}

/** A field of a table as cross-field checks see it: coerced where it was right, raw where it was wrong. */
export type PartlyChecked = Readonly<Record<string, unknown>>;

/** A problem of one field of a table, found by looking at another. */
export interface CrossProblem {
  /** From the table that is checked. */
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Makes a check over several fields of one table. */
export function crossCheck(find: (fields: PartlyChecked) => readonly CrossProblem[]) {
  return z.superRefine<unknown>(
    (fields, check) => {
      for (const { path, message } of find(fields as PartlyChecked))
        check.addIssue({ code: 'custom', path: [...path], message });
    },
    { when: () => true },
  );
}

export const stringMap = table(z.record(z.string(), z.string()));

/** Name or numeric id. */
export const user = z.union([z.string(), laxInteger], {
  error: 'expected a user name or a numeric id',
});
