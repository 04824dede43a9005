/** An answer as plain text that `equalExpressions` can read: words of units, LaTeX and separators of thousands are gone. */
import { latexText } from './latex-text.ts';
import { unwrapText } from './mathd-form.ts';

const units = [
  ...['degree', 'cm', 'centimeter', 'meter', 'mile', 'second', 'minute', 'hour', 'day'],
  ...['week', 'month', 'year', 'foot', 'feet', 'inch', 'yard'],
];

const powers = [
  ['million', '*10^6'],
  ['billion', '*10^9'],
  ['trillion', '*10^12'],
] as const;

export function plainForm(answer: string): string {
  let form = unwrapText(answer, false)
    .replaceAll(/\\?[%$]/g, '')
    .replaceAll(/ (?:or|and) /g, ' , ');
  for (const [word, power] of powers) form = form.replaceAll(word, power);
  // In this order: a "centimeter" has lost its "meter" only after "cm" was looked for.
  for (const unit of units)
    form = form.replaceAll(new RegExp(`${unit}(?:es)?s? *(?:\\^[0-9]+)?`, 'g'), '');
  form = form.replaceAll(/\^ *\\circ/g, '');
  if (form.startsWith('{') && form.endsWith('}')) form = form.slice(1, -1);
  form = form.replaceAll(/,\\! */g, '');
  form = integerText(form) ?? form;
  if (form.includes('\\')) form = latexText(form);
  form = form
    .replaceAll(/- */g, '-')
    // "7 3/4" is a sum.
    .replaceAll(/([0-9]) +([0-9])/g, '$1+$2')
    .replaceAll(/[ {}]/g, '')
    .toLowerCase();
  return isInteger(form) ? (integerText(form.replaceAll(',', '')) ?? form) : form;
}

/** Commas between groups of three digits are no separators of a tuple. */
export function withoutThousands(text: string): string {
  let before = '';
  let after = text;
  while (before !== after) {
    before = after;
    after = before.replaceAll(/(\d),(\d\d\d)($|\D)/g, '$1$2$3');
  }
  return after;
}

export function isInteger(text: string): boolean {
  return integerText(withoutThousands(text)) !== null;
}

/** Of a number that is an integer within 1e-7, all its digits; null = it is none. */
function integerText(text: string): string | null {
  if (!/^\s*[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i.test(text)) return null;
  const value = Number(text.replaceAll('_', ''));
  const whole = Math.round(value);
  return Number.isFinite(value) && Math.abs(value - whole) <= 1e-7 ? String(BigInt(whole)) : null;
}
