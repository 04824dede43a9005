/** What of a user's value JSON can carry. Metrics and extra fields come from code of users: one value too strange must not cost a rollout its reward. */

/** Deeper is dropped: encoders and decoders of others recurse. */
const deepest = 100;
const dropped = Symbol('dropped');

/**
 * A copy of `value` that JSON carries as it is. Non-finite numbers, functions, class instances and the like are left out; `losses` gets the kind of each.
 * Big integers become numbers, typed arrays become lists, whatever has `toJSON` says itself what it is.
 */
export function jsonFit(
  value: Readonly<Record<string, unknown>>,
  losses: Set<string>,
): Readonly<Record<string, unknown>> {
  const fitted = fit(value, losses, []);
  return isPlainObject(fitted) ? fitted : {};
}

function fit(value: unknown, losses: Set<string>, within: readonly object[]): unknown {
  const drop = (kind: string): typeof dropped => {
    losses.add(kind);
    return dropped;
  };
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : drop('a number that is not finite');
    case 'bigint':
      return fit(Number(value), losses, within);
    case 'undefined':
    case 'function':
    case 'symbol':
      return drop(typeof value);
    case 'object':
      break;
  }
  if (value === null) return null;
  if (within.includes(value)) return drop('a reference to itself');
  if (within.length >= deepest) return drop('values nested too deeply');
  const inner = [...within, value];
  try {
    if (Array.isArray(value)) return fitList(value, losses, inner);
    if (ArrayBuffer.isView(value) && !(value instanceof DataView))
      return fitList([...(value as unknown as Iterable<unknown>)], losses, inner);
    if ('toJSON' in value && typeof value.toJSON === 'function')
      return fit((value.toJSON as () => unknown)(), losses, inner);
    if (isPlainObject(value)) return fitObject(value, losses, inner);
  } catch {
    return drop('a value that cannot be read');
  }
  return drop(value.constructor.name);
}

function fitList(list: readonly unknown[], losses: Set<string>, within: readonly object[]) {
  return list.map((part) => fit(part, losses, within)).filter((part) => part !== dropped);
}

function fitObject(
  value: Readonly<Record<string, unknown>>,
  losses: Set<string>,
  within: readonly object[],
): Record<string, unknown> {
  const fitted: [string, unknown][] = [];
  for (const key of Object.keys(value)) {
    try {
      const whole = fit(value[key], losses, within);
      if (whole !== dropped) fitted.push([key, whole]);
    } catch {
      losses.add('a value that cannot be read');
    }
  }
  return Object.fromEntries(fitted);
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
