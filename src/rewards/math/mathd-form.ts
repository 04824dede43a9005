/** An answer in the spelling in which the MATH data set compares answers: layout and units go, shorthand fractions and roots get their braces. */

/** Two answers are the same where their forms are the same text. */
export function mathdForm(answer: string): string {
  const text = unwrapText(answer.trim(), true);
  let form = text
    .replaceAll('\n', '')
    .replaceAll('\\!', '')
    .replaceAll('\\\\', '\\')
    .replaceAll(/[td]frac/g, 'frac')
    .replaceAll(/\\left|\\right/g, '')
    .replaceAll('^{\\circ}', '')
    .replaceAll('^\\circ', '')
    .replaceAll('\\$', '');
  const units = form.split('\\text{ ');
  if (units.length > 2) return text;
  form = (units[0] ?? '').replaceAll('\\%', '').replaceAll(' .', ' 0.').replaceAll('{.', '{0.');
  if (form === '') return form;
  if (form.startsWith('.')) form = `0${form}`;
  const sides = form.split('=');
  if (sides.length === 2 && (sides[0] ?? '').length <= 2) form = sides[1] ?? '';
  const roots = bracedRoots(form);
  const fractions = roots === null ? null : bracedFractions(roots.replaceAll(' ', ''));
  if (fractions === null) return text;
  return slashFraction(fractions === '0.5' ? '\\frac{1}{2}' : fractions);
}

/** Without a `\text{…}` around all of it. */
export function unwrapText(answer: string, isTrimmed: boolean): string {
  const inner = /^\\text\{(.+?)\}$/.exec(answer)?.[1] ?? answer;
  return isTrimmed ? inner.trim() : inner;
}

/** `\sqrt3` becomes `\sqrt{3}`; null = a root of nothing. */
function bracedRoots(form: string): string | null {
  const [first = '', ...rest] = form.split('\\sqrt');
  if (rest.includes('')) return null;
  return rest.reduce((whole, part) => {
    const braced = part.startsWith('{') ? part : `{${part.charAt(0)}}${part.slice(1)}`;
    return `${whole}\\sqrt${braced}`;
  }, first);
}

/** `\frac12` and `\frac1{72}` get their braces; null = a fraction of nothing. */
function bracedFractions(form: string): string | null {
  const [first = '', ...rest] = form.split('\\frac');
  let whole = first;
  for (const part of rest) {
    const [over = '', under = ''] = part;
    if (over === '') return null;
    if (over === '{') whole += `\\frac${part}`;
    else if (part.length < 2) return form;
    else whole += `\\frac{${over}}${under === '{' ? '{' : `{${under}}`}${part.slice(2)}`;
  }
  return whole;
}

/** `1/2` of two plain integers becomes a `\frac`. */
function slashFraction(form: string): string {
  const parts = /^(0|-?[1-9]\d*)\/(0|-?[1-9]\d*)$/.exec(form);
  return parts === null ? form : `\\frac{${parts[1] ?? ''}}{${parts[2] ?? ''}}`;
}
