import { isOnlyBlanks, leadingBlanks, strip } from '../strip.ts';

/**
 * What a pane's whole history shows beyond what it showed at the last read; null = nothing that can be told apart, and the visible screen is
 * what the model gets: at the first read (`previous` null), when the old text is gone from the history, or when only blanks were added.
 *
 * The text begins at the last line break of the stripped old text, counted inside that text, so a leading blank line of the history shifts it. Other
 * runtimes of this agent do the same, and models are trained on it.
 */
export function newOutput(previous: string | null, current: string): string | null {
  if (previous === null) return null;
  const known = strip(previous);
  const found = indexOf(known, current);
  if (found === null) return null;
  const lastBreak = known.lastIndexOf('\n');
  const text = current.slice(lastBreak === -1 ? found : lastBreak);
  return isOnlyBlanks(text) ? null : text;
}

/** Linear in every case: the program in the terminal writes both texts, and `String.indexOf` is quadratic on texts made for it. */
function indexOf(needle: string, haystack: string): number | null {
  if (needle === '') return 0;
  // A history that only grew. The needle does not begin with a blank, so nothing earlier can match.
  const start = leadingBlanks(haystack);
  if (haystack.startsWith(needle, start)) return start;
  if (needle.length > haystack.length - start) return null;
  const fallbacks = borderLengths(needle);
  let matched = 0;
  for (let at = start; at < haystack.length; at++) {
    const code = haystack.charCodeAt(at);
    while (matched > 0 && needle.charCodeAt(matched) !== code)
      matched = fallbacks[matched - 1] ?? 0;
    if (needle.charCodeAt(matched) === code) matched++;
    if (matched === needle.length) return at + 1 - matched;
  }
  return null;
}

/** For each prefix the length of its longest proper prefix that is also its end (Knuth, Morris, Pratt). */
function borderLengths(text: string): Int32Array {
  const lengths = new Int32Array(text.length);
  let border = 0;
  for (let at = 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (border > 0 && text.charCodeAt(border) !== code) border = lengths[border - 1] ?? 0;
    if (text.charCodeAt(border) === code) border++;
    lengths[at] = border;
  }
  return lengths;
}
