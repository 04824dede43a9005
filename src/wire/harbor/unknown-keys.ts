import { z } from 'zod';
import { fieldPath } from './problems.ts';

/** Dotted paths of the keys that a schema ignores in a document, in the document's order: usually misspelt or misplaced fields. */
export function unknownKeys(schema: z.core.$ZodType, document: unknown): readonly string[] {
  return search(schema, document, []).map(fieldPath);
}

type Path = readonly PropertyKey[];

function search(schema: z.core.$ZodType, value: unknown, path: Path): readonly Path[] {
  const core = unwrap(schema);
  if (core instanceof z.core.$ZodArray)
    return Array.isArray(value)
      ? value.flatMap((item, index) => search(core._zod.def.element, item, [...path, index]))
      : [];
  if (!(core instanceof z.core.$ZodObject) || typeof value !== 'object' || value === null)
    return [];
  const shape: Readonly<Record<string, z.core.$ZodType>> = core._zod.def.shape;
  return Object.entries(value).flatMap(([key, field]) => {
    const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
    return known === undefined ? [[...path, key]] : search(known, field, [...path, key]);
  });
}

/** The schema of the fields under defaults, null and conversions. */
function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.core.$ZodPipe) {
    // A conversion in front of the fields (coercion, "is it a table") or behind them: the fields are on the other side.
    const { in: before, out: behind } = schema._zod.def;
    const isLeading = before instanceof z.core.$ZodTransform || before instanceof z.core.$ZodCustom;
    return unwrap(isLeading ? behind : before);
  }
  if (
    schema instanceof z.core.$ZodOptional ||
    schema instanceof z.core.$ZodNullable ||
    schema instanceof z.core.$ZodDefault ||
    schema instanceof z.core.$ZodPrefault
  )
    return unwrap(schema._zod.def.innerType);
  return schema;
}
