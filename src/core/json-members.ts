/** The members of a JSON object as they are spelled: read and written again, `1.0` would become `1`, and a long whole number another one. */

export interface JsonMember {
  readonly name: string;
  /** Of the name and its value together, without white space around them. */
  readonly from: number;
  readonly to: number;
}

/** Of an object that is known to be JSON. Names may stand several times. */
export function membersOf(text: string): readonly JsonMember[] {
  const members: JsonMember[] = [];
  let depth = 0;
  let from = -1;
  let name = '';
  const end = (at: number): void => {
    if (from !== -1) members.push({ name, from, to: trimmedEnd(text, at) });
    from = -1;
  };
  for (let at = 0; at < text.length; at += 1)
    switch (text.charCodeAt(at)) {
      case quote: {
        const close = endOfString(text, at);
        if (depth === 1 && from === -1) {
          from = at;
          name = decoded(text.slice(at, close + 1));
        }
        at = close;
        break;
      }
      case openBrace:
      case openBracket:
        depth += 1;
        break;
      case closeBrace:
      case closeBracket:
        if (depth === 1) end(at);
        depth -= 1;
        break;
      case comma:
        if (depth === 1) end(at);
        break;
    }
  return members;
}

/** The value of a member, as it is spelled. */
export function valueOf(text: string, { from, to }: JsonMember): string {
  const colon = text.indexOf(':', endOfString(text, from));
  return text.slice(colon + 1, to).trimStart();
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

function decoded(quoted: string): string {
  const value: unknown = JSON.parse(quoted);
  return typeof value === 'string' ? value : '';
}

function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return at;
  }
}

function trimmedEnd(text: string, to: number): number {
  let end = to;
  while (/[ \t\r\n]/.test(text[end - 1] ?? 'x')) end -= 1;
  return end;
}
