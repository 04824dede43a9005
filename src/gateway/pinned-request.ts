/** A request of a dialect with the sampling parameters of its rollout in place of its own, as the dialect spells them: what it then says of itself is what holds. */
import type { SamplingPins } from '../wire/rollout/route-rules.ts';
import type { PinFields } from './dialects/dialect.ts';

type JsonObject = Readonly<Record<string, unknown>>;

export interface PinnedRequest {
  readonly body: JsonObject;
  /** Fields whose values the client had chosen otherwise. */
  readonly replaced: readonly string[];
}

export function pinnedRequest(
  given: JsonObject,
  pins: SamplingPins,
  fields: PinFields,
): PinnedRequest {
  let body = given;
  const replaced: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    const pinned = pins[name as keyof SamplingPins];
    if (pinned === undefined) continue;
    const value = field.isList === true && typeof pinned === 'string' ? [pinned] : pinned;
    const before = valueAt(body, field.path);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(value))
      replaced.push(field.path.join('.'));
    body = withValue(body, field.path, value);
  }
  return { body, replaced };
}

/** As fields of the chat request, over all others: undefined is not sent. */
export function pinnedFields(pins: SamplingPins): JsonObject {
  return Object.fromEntries(
    Object.entries(pins).map(([name, value]) => [name, value ?? undefined]),
  );
}

function valueAt(body: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      typeof value === 'object' && value !== null ? (value as JsonObject)[name] : undefined,
    body,
  );
}

/** null takes the field away. */
function withValue(body: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name = '', ...rest] = path;
  if (rest.length === 0) {
    if (value !== null) return { ...body, [name]: value };
    return Object.fromEntries(Object.entries(body).filter(([other]) => other !== name));
  }
  const inner = body[name];
  const isObject = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
  // What is of a wrong kind is refused for it later.
  if (!isObject && inner !== undefined && inner !== null) return body;
  if (!isObject && value === null) return body;
  return { ...body, [name]: withValue(isObject ? (inner as JsonObject) : {}, rest, value) };
}
