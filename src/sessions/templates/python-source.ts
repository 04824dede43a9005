/**
 * Reads texts that a checkpoint's own Python file assigns to names, such as the words that tell a model of its tools. Only literals are read; nothing of the
 * file runs.
 */
import { unescaped } from './jinja-lexer.ts';

/** null = the file assigns no literal text to this name. */
export function assignedText(source: string, name: string): string | null {
  const start = new RegExp(`^${name}(?:\\s*:\\s*str)?\\s*=\\s*(\\()?`, 'm').exec(source);
  if (start === null) return null;
  const literal =
    /\s*(?:"""((?:[^\\]|\\[^])*?)"""|'''((?:[^\\]|\\[^])*?)'''|"((?:[^"\\\n]|\\[^])*)"|'((?:[^'\\\n]|\\[^])*)')/y;
  literal.lastIndex = start.index + start[0].length;
  let text: string | null = null;
  for (let match = literal.exec(source); match !== null; match = literal.exec(source)) {
    const [, a, b, c, d] = match;
    text = (text ?? '') + unescaped(a ?? b ?? c ?? d ?? '');
    // Without brackets an assignment ends with its line.
    if (start[1] === undefined) break;
  }
  return text;
}

/** `str.format` with names: `{name}`, and doubled brackets for single ones. */
export function formatted(template: string, values: ReadonlyMap<string, string>): string {
  return template.replace(/\{\{|\}\}|\{(\w+)\}/g, (whole, name?: string) => {
    if (name === undefined) return whole.charAt(0);
    return values.get(name) ?? whole;
  });
}
