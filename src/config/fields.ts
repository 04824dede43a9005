/** A configuration document in wire spelling that nobody has checked yet. What has a wrong type stays as it is, for the schema to report. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The map at `key`, made when missing. */
export function section(fields: Fields, key: string): Fields {
  const value = fields[key];
  if (isFields(value)) return value;
  const made: Fields = {};
  if (value === undefined || value === null) fields[key] = made;
  return made;
}

/** Appends to the list at `key`. */
export function extend(fields: Fields, key: string, values: readonly unknown[]): void {
  if (values.length === 0) return;
  const value = fields[key] ?? [];
  if (Array.isArray(value)) fields[key] = [...(value as unknown[]), ...values];
}

/** Puts entries over the map at `key`. */
export function update(fields: Fields, key: string, entries: Readonly<Fields>): void {
  if (Object.keys(entries).length > 0) Object.assign(section(fields, key), entries);
}
