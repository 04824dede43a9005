/** The most that one observation shows of a terminal. */
export const maxOutputBytes = 10_000;

/** Keeps the first and the last 5,000 bytes of a longer text; a character at a cut is left out whole. */
export function limitOutput(text: string): string {
  if (Buffer.byteLength(text) <= maxOutputBytes) return text;
  const bytes = Buffer.from(text);
  const kept = maxOutputBytes / 2;
  let headEnd = kept;
  while (isContinuation(bytes[headEnd])) headEnd--;
  let tailStart = bytes.length - kept;
  while (isContinuation(bytes[tailStart])) tailStart++;
  const note = `[... at most ${maxOutputBytes} bytes are shown; ${tailStart - headEnd} bytes in the middle are left out ...]`;
  return `${bytes.toString('utf8', 0, headEnd)}\n${note}\n${bytes.toString('utf8', tailStart)}`;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
