/**
 * Values as a chat template of a Python engine sees them. JavaScript's own forget what decides bytes: that `1.0` was written as a fraction, integers
 * beyond 2^53, and the order of keys such as "1"; so integers are bigints, fractions are `PyFloat` and dictionaries are maps.
 */

/** A float: also one with a whole value, such as 1.0. */
export class PyFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** What a template names and nobody gave. It prints as nothing, is false and has no items; anything else done with it is refused. */
export class Undefined {
  readonly what: string;

  constructor(what: string) {
    this.what = what;
  }
}

/** As lists, but printed in round brackets. */
export class Tuple extends Array<Value> {}

export function tupleOf(...items: Value[]): Tuple {
  const tuple = new Tuple();
  for (const item of items) tuple.push(item);
  return tuple;
}

/** What `namespace(...)` makes: the one thing that a template may change. */
export class Namespace {
  readonly fields: Dict;

  constructor(fields: Dict) {
    this.fields = fields;
  }
}

export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

/** What the filter `safe` makes. It can be printed; joined to other text it would change that, which we refuse. */
export class SafeText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A macro, a method bound to its object, or a function of the engine. */
export class Callable {
  readonly name: string;
  readonly call: (given: Arguments) => Value;
  /** Only of things that are both, such as `loop`. */
  readonly attributes: Dict;

  constructor(name: string, call: (given: Arguments) => Value, attributes: Dict = new Map()) {
    this.name = name;
    this.call = call;
    this.attributes = attributes;
  }
}

export type Dict = Map<string, Value>;

export type Value =
  | null
  | boolean
  | bigint
  | string
  | PyFloat
  | SafeText
  | Undefined
  | readonly Value[]
  | Dict
  | Namespace
  | Callable;

/** What the template itself refuses, or cannot do with what it was given. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

export const isNumber = (value: Value): value is bigint | boolean | PyFloat =>
  typeof value === 'bigint' || typeof value === 'boolean' || value instanceof PyFloat;

export function isTrue(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return value !== 0n;
  if (value instanceof PyFloat) return value.value !== 0;
  if (typeof value === 'string' || isList(value)) return value.length > 0;
  if (value instanceof SafeText) return value.text.length > 0;
  return value instanceof Map ? value.size > 0 : true;
}

export function typeName(value: Value): string {
  if (value === null) return 'NoneType';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'string') return 'str';
  if (value instanceof PyFloat) return 'float';
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof SafeText) return 'Markup';
  if (isList(value)) return value instanceof Tuple ? 'tuple' : 'list';
  return value instanceof Map ? 'dict' : 'object';
}

/** Refuses what nobody gave, in the words of Jinja. */
export function demand<T extends Value>(value: T): Exclude<T, Undefined> {
  if (value instanceof Undefined) throw new TemplateError(value.what);
  return value as Exclude<T, Undefined>;
}

export function isEqual(left: Value, right: Value): boolean {
  if (isNumber(left) && isNumber(right)) return compareNumbers(left, right) === 0;
  if (isList(left) && isList(right))
    return (
      left instanceof Tuple === right instanceof Tuple &&
      left.length === right.length &&
      left.every((item, index) => isEqual(item, right[index] ?? null))
    );
  if (left instanceof Map && right instanceof Map)
    return (
      left.size === right.size &&
      [...left].every(([key, item]) => right.has(key) && isEqual(item, right.get(key) ?? null))
    );
  if (left instanceof Undefined) return right instanceof Undefined;
  return left === right;
}

/** NaN where they have no order. JavaScript compares integers with fractions exactly, as Python does. */
export function compareNumbers(
  left: bigint | boolean | PyFloat,
  right: bigint | boolean | PyFloat,
): number {
  const a = plainNumber(left);
  const b = plainNumber(right);
  if (a < b) return -1;
  if (a > b) return 1;
  return a == b ? 0 : Number.NaN;
}

export function plainNumber(value: bigint | boolean | PyFloat): bigint | number {
  if (value instanceof PyFloat) return value.value;
  return typeof value === 'boolean' ? BigInt(value) : value;
}

/** What a loop goes over, or a test looks into. */
export function itemsOf(value: Value): readonly Value[] {
  if (isList(value)) return value;
  if (typeof value === 'string') return Array.from(value);
  if (value instanceof Map) return [...value.keys()];
  if (value instanceof Undefined) return [];
  throw new TemplateError(`'${typeName(value)}' object is not iterable`);
}

/**
 * From what JavaScript parsed: a number without a fraction is an integer. Parts that were parsed exactly, such as floats and maps, stay as they are.
 */
export function valueOf(value: unknown): Value {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'bigint' || value instanceof PyFloat || value instanceof Map)
    return value as Value;
  if (typeof value === 'number')
    return Number.isSafeInteger(value) && !Object.is(value, -0)
      ? BigInt(value)
      : new PyFloat(value);
  if (Array.isArray(value)) return value.map(valueOf);
  if (typeof value === 'object') {
    const fields: Dict = new Map();
    for (const [key, part] of Object.entries(value))
      if (part !== undefined) fields.set(key, valueOf(part));
    return fields;
  }
  throw new TemplateError(`a ${typeof value} is no value of a template`);
}
