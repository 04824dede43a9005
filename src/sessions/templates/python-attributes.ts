/** `value.name`, `value[key]` and `value[from:to]`, as Jinja's sandbox looks them up: a name first as a method, a key first as an item. */
import { dictMethod, listMethod, textMethod } from './python-methods.ts';
import { textOf } from './python-text.ts';
import {
  Callable,
  isList,
  Namespace,
  TemplateError,
  Tuple,
  tupleOf,
  typeName,
  Undefined,
  type Value,
} from './python-values.ts';

export function attributeOf(target: Value, name: string): Value {
  return firstFound([methodOf(target, name), fieldOf(target, name)], target, name);
}

/** None is found: only what is not there at all is looked for further. */
function firstFound(found: readonly (Value | undefined)[], target: Value, name: string): Value {
  const value = found.find((one) => one !== undefined);
  return value === undefined ? missing(target, name) : value;
}

export function itemAt(target: Value, key: Value): Value {
  if (typeof key === 'string')
    return firstFound([fieldOf(target, key), methodOf(target, key)], target, key);
  if (typeof key === 'bigint' || typeof key === 'boolean') {
    const items = typeof target === 'string' ? Array.from(target) : isList(target) ? target : null;
    if (items === null) return missing(target, String(key));
    const index = Number(key);
    return items[index < 0 ? index + items.length : index] ?? nullItem(items, index, target);
  }
  return missing(target, typeName(key));
}

function nullItem(items: readonly Value[], index: number, target: Value): Value {
  const at = index < 0 ? index + items.length : index;
  return at >= 0 && at < items.length ? null : missing(target, String(index));
}

/** undefined = it has none of this name. */
function fieldOf(target: Value, name: string): Value | undefined {
  if (target instanceof Map) return target.get(name);
  if (target instanceof Namespace) return target.fields.get(name);
  return target instanceof Callable ? target.attributes.get(name) : undefined;
}

function methodOf(target: Value, name: string): Value | undefined {
  if (name.startsWith('_')) return undefined;
  if (target instanceof Namespace) return target.fields.get(name);
  const method =
    typeof target === 'string'
      ? textMethod(target, name)
      : target instanceof Map
        ? dictMethod(target, name)
        : isList(target)
          ? listMethod(target, name)
          : undefined;
  return method === undefined ? undefined : new Callable(name, method);
}

function missing(target: Value, name: string): Undefined {
  if (target instanceof Undefined) throw new TemplateError(target.what);
  const kind = target === null ? 'None' : `'${typeName(target)} object'`;
  return new Undefined(`${kind} has no attribute '${name}'`);
}

export function sliceOf(target: Value, parts: readonly [Value, Value, Value]): Value {
  if (target instanceof Undefined) throw new TemplateError(target.what);
  const items = typeof target === 'string' ? Array.from(target) : isList(target) ? target : null;
  if (items === null) return missing(target, 'slice');
  const [from, to, step] = parts.map(boundOf);
  const stride = step ?? 1;
  if (stride === 0) throw new TemplateError('slice step cannot be zero');
  const chosen: Value[] = [];
  const count = items.length;
  const clamp = (bound: number): number => {
    const at = bound < 0 ? bound + count : bound;
    return stride > 0 ? Math.min(Math.max(at, 0), count) : Math.min(Math.max(at, -1), count - 1);
  };
  const start = from == null ? (stride > 0 ? 0 : count - 1) : clamp(from);
  const end = to == null ? (stride > 0 ? count : -1) : clamp(to);
  for (let at = start; stride > 0 ? at < end : at > end; at += stride)
    chosen.push(items[at] ?? null);
  if (typeof target === 'string') return chosen.map(textOf).join('');
  return target instanceof Tuple ? tupleOf(...chosen) : chosen;
}

function boundOf(value: Value): number | null {
  if (value === null) return null;
  if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value);
  throw new TemplateError('slice indices must be integers or None');
}
