/** Lenient reading of foreign JSON: what is not of the wanted type is null. */

export type JsonRecord = Readonly<Record<string, unknown>>;

export function recordOf(value: unknown): JsonRecord | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonRecord)
    : null;
}

export function listOf(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? value : null;
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Token ids; null when anything in the list is not one. */
export function idsOf(value: unknown): readonly number[] | null {
  const list = listOf(value);
  if (list === null) return null;
  return list.every((each): each is number => Number.isSafeInteger(each) && Number(each) >= 0)
    ? list
    : null;
}
