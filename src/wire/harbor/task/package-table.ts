import { z } from 'zod';
import { nullable } from '../lax.ts';
import { table } from './table.ts';

/** The name of a package, `org/name`. */
export const packageName = z
  .string()
  .regex(
    /^[a-zA-Z0-9][a-zA-Z0-9._-]*\/[a-zA-Z0-9][a-zA-Z0-9._-]*$/,
    'expected org/name, of letters, digits, ".", "_" and "-"',
  )
  .refine((name) => !name.includes('..'), 'must not contain ".."');

const author = table(z.object({ name: z.string(), email: nullable(z.string()) }));

/** `[task]`: the task as a package. */
export const packageTable = table(
  z.object({
    name: packageName,
    version: nullable(z.string().min(1, 'must not be empty')),
    description: z.string().default(''),
    authors: z.array(author).default([]),
    keywords: z.array(z.string()).default([]),
  }),
);
