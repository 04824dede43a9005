/** JSON text that reads back as the same numbers: `JSON.stringify` alone loses the sign of zero, which engines print as a log-probability. */
export function exactJson(value: unknown, indent?: number): string {
  return JSON.stringify(exact(value), null, indent);
}

const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };
// Written as a fraction: other languages read `-0` as an integer, without its sign.
const negativeZero = rawJSON('-0.0');

/** The same value where nothing has to change: long lists of numbers are looked through, not copied. */
function exact(value: unknown): unknown {
  if (Object.is(value, -0)) return negativeZero;
  if (Array.isArray(value)) return value.some(needsLook) ? value.map(exact) : value;
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, exact(part)]));
}

function needsLook(value: unknown): boolean {
  return typeof value === 'object' || Object.is(value, -0);
}
