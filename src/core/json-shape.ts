export interface JsonShape {
  /** Of the innermost list or object; 0 = there is none. */
  readonly depth: number;
  /** At least as many values as there are, within a factor of two. */
  readonly values: number;
}

/** What a text of JSON holds, by its bytes, before anything is made of it: a reader of a small text can be kept busy for long, or run out of stack. */
export function jsonShape(bytes: Uint8Array): JsonShape {
  let open = 0;
  let depth = 0;
  let values = 1;
  let isInString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInString) {
      if (byte === backslash) at += 1;
      else if (byte === quote) isInString = false;
    } else if (byte === quote) isInString = true;
    else if (byte === comma) values += 1;
    else if (byte === openBrace || byte === openBracket) {
      values += 1;
      open += 1;
      if (open > depth) depth = open;
    } else if (byte === closeBrace || byte === closeBracket) open -= 1;
  }
  return { depth, values };
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
