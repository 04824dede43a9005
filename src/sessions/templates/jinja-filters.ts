/** `value | name`. A filter that is not here is refused by name. */
import { GivenValues, needText } from './python-arguments.ts';
import { itemAt } from './python-attributes.ts';
import { dumpJson } from './python-json.ts';
import { capitalized, textMethod } from './python-methods.ts';
import { compareValues, strip, textOf } from './python-text.ts';
import { applyTest } from './jinja-tests.ts';
import {
  type Arguments,
  demand,
  isEqual,
  isList,
  isTrue,
  itemsOf,
  PyFloat,
  SafeText,
  TemplateError,
  tupleOf,
  typeName,
  Undefined,
  type Value,
} from './python-values.ts';

type Filter = (value: Value, given: GivenValues, raw: Arguments) => Value;

const length: Filter = (value) => {
  if (value instanceof Map) return BigInt(value.size);
  if (typeof value === 'string' || isList(value) || value instanceof Undefined)
    return BigInt(itemsOf(value).length);
  throw new TemplateError(`object of type '${typeName(value)}' has no len()`);
};

const orElse: Filter = (value, given) => {
  given.allow('default_value', 'boolean');
  const isAbsent =
    value instanceof Undefined || (given.at(1, 'boolean') === true && !isTrue(value));
  return isAbsent ? (given.at(0, 'default_value') ?? '') : value;
};

const filters = new Map<string, Filter>([
  ['tojson', toJson],
  ['length', length],
  ['count', length],
  ['default', orElse],
  ['d', orElse],
  ['string', (value) => textOf(value)],
  ['safe', (value) => new SafeText(textOf(value))],
  ['trim', (value, given) => strip(textOf(value), given.allow('chars').optionalText(0, 'chars'))],
  ['lower', (value) => textOf(value).toLowerCase()],
  ['upper', (value) => textOf(value).toUpperCase()],
  ['capitalize', (value) => capitalized(textOf(value))],
  [
    'replace',
    (value, given, raw) => textMethod(textOf(value), 'replace')?.(raw) ?? given.text(0, 'old'),
  ],
  ['list', (value) => [...itemsOf(value)]],
  ['first', (value) => itemsOf(value)[0] ?? absent(value, 'first')],
  ['last', (value) => itemsOf(value).at(-1) ?? absent(value, 'last')],
  [
    'reverse',
    (value) =>
      typeof value === 'string'
        ? Array.from(value).reverse().join('')
        : [...itemsOf(value)].reverse(),
  ],
  ['items', (value) => pairs(value)],
  ['dictsort', (value, given) => sortedPairs(value, given.allow())],
  ['join', joined],
  ['indent', indented],
  ['int', toInteger],
  ['float', toFloat],
  ['abs', (value) => absolute(value)],
  ['map', mapped],
  ['select', (value, _given, raw) => chosen(value, raw, (item) => item, true)],
  ['reject', (value, _given, raw) => chosen(value, raw, (item) => item, false)],
  ['selectattr', (value, given, raw) => chosen(value, withoutFirst(raw), attribute(given), true)],
  ['rejectattr', (value, given, raw) => chosen(value, withoutFirst(raw), attribute(given), false)],
  ['unique', (value, given) => unique(itemsOf(value), given.allow())],
  ['sort', (value, given) => sorted(itemsOf(value), given.allow('reverse'))],
]);

export function applyFilter(name: string, value: Value, given: Arguments): Value {
  const filter = filters.get(name);
  if (filter === undefined)
    throw new TemplateError(`the filter '${name}' is not supported in a chat template`);
  return filter(value, new GivenValues(`the filter '${name}'`, given), given);
}

function toJson(value: Value, given: GivenValues): Value {
  given.allow('ensure_ascii', 'indent', 'separators', 'sort_keys');
  const indent = given.at(1, 'indent') ?? null;
  const separators = given.at(2, 'separators') ?? null;
  const [item, key] = isList(separators) ? separators : [];
  return dumpJson(value, {
    ensureAscii: isTrue(given.at(0, 'ensure_ascii') ?? false),
    sortKeys: isTrue(given.at(3, 'sort_keys') ?? false),
    indent:
      indent === null
        ? null
        : typeof indent === 'string'
          ? indent
          : ' '.repeat(given.integer(1, 'indent', 0)),
    itemSeparator: typeof item === 'string' ? item : indent === null ? ', ' : ',',
    keySeparator: typeof key === 'string' ? key : ': ',
  });
}

function absent(value: Value, which: string): Value {
  const items = itemsOf(value);
  return items.length > 0 ? null : new Undefined(`No ${which} item, sequence was empty.`);
}

function pairs(value: Value): readonly Value[] {
  if (value instanceof Undefined) return [];
  if (!(value instanceof Map)) throw new TemplateError('Can only get item pairs from a mapping.');
  return [...value].map(([key, item]) => tupleOf(key, item));
}

function sortedPairs(value: Value, given: GivenValues): Value {
  if (!(value instanceof Map)) throw given.wrong('needs a dictionary');
  const entries = [...value].map(([key, item]) => tupleOf(key, item));
  return entries.sort((a, b) => order(lowered(a[0] ?? null), lowered(b[0] ?? null)));
}

const lowered = (value: Value): Value => (typeof value === 'string' ? value.toLowerCase() : value);

function order(left: Value, right: Value): number {
  const result = compareValues(left, right);
  if (result === null) throw new TemplateError('values of these types have no order');
  return result;
}

function sorted(items: readonly Value[], given: GivenValues): Value {
  const isReverse = isTrue(given.at(0, 'reverse') ?? false);
  return [...items].sort((a, b) => {
    const result = order(lowered(a), lowered(b));
    return isReverse ? -result : result;
  });
}

function unique(items: readonly Value[], given: GivenValues): Value {
  given.allow();
  const seen: Value[] = [];
  return items.filter((item) => {
    const key = lowered(item);
    if (seen.some((one) => isEqual(one, key))) return false;
    seen.push(key);
    return true;
  });
}

function joined(value: Value, given: GivenValues): Value {
  const separator = given.allow('d', 'attribute').at(0, 'd') ?? '';
  const name = given.at(1, 'attribute') ?? null;
  const items = itemsOf(value).map((item) => (name === null ? item : itemAt(item, name)));
  return items.map(textOf).join(textOf(separator));
}

function indented(value: Value, given: GivenValues): Value {
  given.allow('width', 'first', 'blank');
  const width = given.at(0, 'width') ?? 4n;
  const indent = typeof width === 'string' ? width : ' '.repeat(given.integer(0, 'width', 4));
  const isFirst = isTrue(given.at(1, 'first') ?? false);
  const indentsBlank = isTrue(given.at(2, 'blank') ?? false);
  // Jinja adds a line end before it looks for lines, so that the last one keeps its own.
  const found = textMethod(
    `${needText('indent', value)}\n`,
    'splitlines',
  )?.({
    positional: [],
    named: new Map(),
  });
  const lines = itemsOf(found ?? null).map(textOf);
  const text = lines
    .map((line, index) => (index === 0 || (line === '' && !indentsBlank) ? line : indent + line))
    .join('\n');
  return isFirst ? indent + text : text;
}

function toInteger(value: Value, given: GivenValues): Value {
  given.allow('default');
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return BigInt(value);
  if (value instanceof PyFloat && Number.isFinite(value.value))
    return BigInt(Math.trunc(value.value));
  const text = typeof value === 'string' ? strip(value, null) : '';
  if (/^[-+]?\d+$/.test(text)) return BigInt(text.replace('+', ''));
  const number = Number(text);
  if (text !== '' && Number.isFinite(number)) return BigInt(Math.trunc(number));
  return given.at(0, 'default') ?? 0n;
}

function toFloat(value: Value, given: GivenValues): Value {
  given.allow('default');
  if (value instanceof PyFloat) return value;
  if (typeof value === 'bigint' || typeof value === 'boolean') return new PyFloat(Number(value));
  const number =
    typeof value === 'string' && strip(value, null) !== '' ? Number(value) : Number.NaN;
  return Number.isNaN(number) ? (given.at(0, 'default') ?? new PyFloat(0)) : new PyFloat(number);
}

function absolute(value: Value): Value {
  const number = demand(value);
  if (typeof number === 'bigint') return number < 0n ? -number : number;
  if (number instanceof PyFloat) return new PyFloat(Math.abs(number.value));
  throw new TemplateError(`bad operand type for abs(): '${typeName(number)}'`);
}

function mapped(value: Value, given: GivenValues, raw: Arguments): Value {
  const name = raw.named.get('attribute');
  if (name !== undefined) {
    const initial = raw.named.get('default');
    return itemsOf(value).map((item) => {
      const found = deepAttribute(item, textOf(name));
      return found instanceof Undefined && initial !== undefined ? initial : found;
    });
  }
  const filter = given.text(0, 'filter');
  return itemsOf(value).map((item) => applyFilter(filter, item, withoutFirst(raw)));
}

const withoutFirst = (raw: Arguments): Arguments => ({
  positional: raw.positional.slice(1),
  named: raw.named,
});

const attribute =
  (given: GivenValues): ((item: Value) => Value) =>
  (item) =>
    deepAttribute(item, given.text(0, 'attr'));

function deepAttribute(item: Value, path: string): Value {
  let value = item;
  for (const name of path.split('.'))
    value = itemAt(value, /^\d+$/.test(name) ? BigInt(name) : name);
  return value;
}

function chosen(
  value: Value,
  raw: Arguments,
  part: (item: Value) => Value,
  wanted: boolean,
): Value {
  const [name, ...positional] = raw.positional;
  const holds = (item: Value): boolean =>
    name === undefined
      ? isTrue(part(item))
      : applyTest(textOf(name), part(item), { positional, named: raw.named });
  return itemsOf(value).filter((item) => holds(item) === wanted);
}
