/**
 * The body of a chat request with pinned sampling parameters: the members that are pinned are cut out of its bytes, wherever and however often they stand, and
 * the pins are put at its end. All else stays byte for byte: read and written again, `1.0` would become `1`, and with it the prompt that a template makes of a tool.
 */
import { RequestProblem } from './dialects/dialect.ts';

/** Other names of a pin. */
const twins: ReadonlyMap<string, string> = new Map([['max_completion_tokens', 'max_tokens']]);

export interface PinnedBody {
  readonly bytes: Buffer;
  /** Names that the client gave other values; for the log. */
  readonly replaced: readonly string[];
}

interface Member {
  readonly name: string;
  /** Of the name and of the value in the body. */
  readonly from: number;
  readonly to: number;
}

/** Throws RequestProblem for what is no JSON object. */
export function pinnedBody(body: Buffer, pins: Readonly<Record<string, unknown>>): PinnedBody {
  const given = objectIn(body);
  const values = new Map<string, unknown>(Object.entries(pins));
  const pinOf = (name: string): string => twins.get(name) ?? name;
  const replaced = Object.keys(given).filter(
    (name) =>
      values.has(pinOf(name)) &&
      JSON.stringify(given[name]) !== JSON.stringify(values.get(pinOf(name))),
  );
  const kept = membersOf(body.toString('latin1'))
    .filter(({ name }) => !values.has(pinOf(name)))
    .map(({ from, to }) => body.subarray(from, to));
  const added = [...values]
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${JSON.stringify(spelledAs(name, given))}:${JSON.stringify(value)}`);
  const comma = Buffer.from(',');
  const members = [...kept, ...added.map((member) => Buffer.from(member))];
  const inside = members.flatMap((member, index) => (index === 0 ? [member] : [comma, member]));
  return { bytes: Buffer.concat([Buffer.from('{'), ...inside, Buffer.from('}')]), replaced };
}

/** Hosts of OpenAI's newer models know the newer name only; who asks them says it. */
function spelledAs(pin: string, given: Readonly<Record<string, unknown>>): string {
  const isNewer = pin === 'max_tokens' && 'max_completion_tokens' in given && !(pin in given);
  return isNewer ? 'max_completion_tokens' : pin;
}

function objectIn(body: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw new RequestProblem('the body is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RequestProblem('the body is not a JSON object');
  return value as Readonly<Record<string, unknown>>;
}

/** Of an object that is known to be JSON; one character of `text` is one byte. */
function membersOf(text: string): readonly Member[] {
  const members: Member[] = [];
  let depth = 0;
  let from = -1;
  let name = '';
  const end = (at: number): void => {
    if (from !== -1) members.push({ name, from, to: trimmedEnd(text, at) });
    from = -1;
  };
  for (let at = 0; at < text.length; at += 1)
    switch (text.charAt(at)) {
      case '"': {
        const close = endOfString(text, at);
        if (depth === 1 && from === -1) {
          from = at;
          name = decoded(text.slice(at, close + 1));
        }
        at = close;
        break;
      }
      case '{':
      case '[':
        depth += 1;
        break;
      case '}':
      case ']':
        if (depth === 1) end(at);
        depth -= 1;
        break;
      case ',':
        if (depth === 1) end(at);
        break;
    }
  return members;
}

/** A name of other letters than ASCII is pinned nowhere: what its bytes are read as does not matter. */
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
