/** The first `maxLength` code units of a text, fewer where a character would be halved: half of one is no text that can be written. */
export function cutText(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, '');
}
