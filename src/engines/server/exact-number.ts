/** JSON has a negative zero, and engines print it; `JSON.stringify` would lose the sign. */
const rawJson = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON;
const negativeZero = rawJson('-0.0');

/** A value that `JSON.stringify` prints as exactly this number. */
export function exactNumber(value: number): unknown {
  return Object.is(value, -0) ? negativeZero : value;
}
