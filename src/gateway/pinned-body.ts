/**
 * The body of a chat request with pinned sampling parameters: the members that are pinned are cut out of its bytes, wherever and however often they stand, and
 * the pins are put at its end. All else stays byte for byte: read and written again, `1.0` would become `1`, and with it the prompt that a template makes of a tool.
 */
import { membersOf } from '../core/json-members.ts';
import { RequestProblem } from './dialects/dialect.ts';

/** Other names of a pin. */
const twins: ReadonlyMap<string, string> = new Map([['max_completion_tokens', 'max_tokens']]);

export interface PinnedBody {
  readonly bytes: Buffer;
  /** Names that the client gave other values; for the log. */
  readonly replaced: readonly string[];
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
  // One character of it is one byte; a name of other letters than ASCII is pinned nowhere, so it does not matter what its bytes are read as.
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
