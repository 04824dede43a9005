/** Finds what may be a JSON object in a reply; both ways count braces only and take linear time. */

/** The first object with balanced braces outside strings: [start, end), or null. A `}` before any `{` counts, so that nothing opens after it. */
export function findBalancedObject(text: string): readonly [number, number] | null {
  let depth = 0;
  let start = -1;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') at++;
    else if (char === '"') isInString = !isInString;
    else if (isInString) continue;
    else if (char === '{') {
      if (depth === 0) start = at;
      depth++;
    } else if (char === '}') {
      depth--;
      if (depth === 0 && start !== -1) return [start, at + 1];
    }
  }
  return null;
}

/** Pieces `{…}` with at most one level of braces inside, strings or not, from left to right. */
export function* findShallowObjects(text: string): Generator<string> {
  const braces = bracePlaces(text);
  for (let first = 0; first < braces.length; first++) {
    const last = shallowEnd(text, braces, first);
    if (last === null) continue;
    yield text.slice(braces[first], (braces[last] ?? 0) + 1);
    first = last;
  }
}

/** Only pairs are skipped, and each of them is a piece of its own: a failed search is never repeated over the same braces. */
function shallowEnd(text: string, braces: readonly number[], first: number): number | null {
  const isClosing = (index: number): boolean => text.charAt(braces[index] ?? -1) === '}';
  if (isClosing(first)) return null;
  for (let at = first + 1; at < braces.length; at += 2) {
    if (isClosing(at)) return at;
    if (!isClosing(at + 1)) return null;
  }
  return null;
}

/** How many `}` are missing, wherever the braces stand. */
export function missingBraces(text: string): number {
  let missing = 0;
  for (const place of bracePlaces(text)) missing += text.charAt(place) === '{' ? 1 : -1;
  return missing;
}

function bracePlaces(text: string): readonly number[] {
  const places: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '{' || char === '}') places.push(at);
  }
  return places;
}
