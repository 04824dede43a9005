const unprintable = /[\p{C}\p{Z}]/u;
const named: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/** A text in quotes as Python's `repr` writes it; other runtimes of this agent quote a reply so. */
export function pythonRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  return `${quote}${Array.from(text, (char) => spell(char, quote)).join('')}${quote}`;
}

function spell(char: string, quote: string): string {
  if (char === quote) return `\\${char}`;
  const name = named[char];
  if (name !== undefined) return name;
  if (char === ' ' || !unprintable.test(char)) return char;
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x1_0000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
