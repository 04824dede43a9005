/** One word of a shell command, whatever it holds. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
