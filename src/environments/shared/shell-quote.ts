/** One word for a POSIX shell: single quotes, nothing inside is expanded. */
export function shellQuote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
