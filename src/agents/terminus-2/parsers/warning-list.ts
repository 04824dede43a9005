/** One warning per line, as a model reads them. */
export function warningList(warnings: readonly string[]): string {
  return warnings.map((warning) => `- ${warning}`).join('\n');
}

/** Names with their places, in the order of the places; null when fewer than two were found or they stand as listed. */
export function wrongOrder(
  names: readonly string[],
  placeOf: (name: string) => number,
): { readonly found: readonly string[]; readonly expected: readonly string[] } | null {
  const places = names.map((name) => ({ name, place: placeOf(name) })).filter((p) => p.place >= 0);
  const expected = places.map((p) => p.name);
  const found = places.toSorted((a, b) => a.place - b.place).map((p) => p.name);
  return found.join() === expected.join() ? null : { found, expected };
}
