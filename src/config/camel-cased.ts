/** Keys of a document as those of an option, tables within tables too. */
export function camelCased(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase()),
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? camelCased(value as Readonly<Record<string, unknown>>)
        : value,
    ]),
  );
}
