/** JSON of a dataset: whole numbers beyond what JavaScript counts exactly keep their digits, and those beyond 64 bits are found. */

export type DatasetJson =
  { readonly value: unknown; readonly tooLarge: readonly string[] } | { readonly problem: string };

interface RawJson {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}

const json = JSON as unknown as RawJson;
const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];

export function parseDatasetJson(text: string): DatasetJson {
  const tooLarge: string[] = [];
  try {
    const value = json.parse(text, (key, part, { source }) => {
      if (typeof part !== 'number' || source === undefined) return part;
      if (!Number.isFinite(part)) tooLarge.push(key);
      if (!/^-?\d+$/.test(source) || Number.isSafeInteger(part)) return part;
      const exact = BigInt(source);
      if (exact < least || exact > most) tooLarge.push(key);
      return json.rawJSON(source);
    });
    return { value, tooLarge };
  } catch {
    return { problem: 'is no JSON' };
  }
}

export function isExactNumber(value: unknown): boolean {
  return json.isRawJSON(value);
}
