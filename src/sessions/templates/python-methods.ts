/** The methods of texts, dictionaries and lists that templates call. Others that Python has are refused by name, never taken for absent. */
import { GivenValues } from './python-arguments.ts';
import { pythonSpaces, strip } from './python-text.ts';
import {
  type Arguments,
  type Dict,
  isEqual,
  itemsOf,
  TemplateError,
  tupleOf,
  typeName,
  type Value,
} from './python-values.ts';

type Method = (given: Arguments) => Value;
type TextMethod = (text: string, given: GivenValues) => Value;

const stripper =
  (side: 'both' | 'left' | 'right'): TextMethod =>
  (text, given) =>
    strip(text, given.allow('chars').optionalText(0, 'chars'), side);

const textMethods = new Map<string, TextMethod>([
  ['strip', stripper('both')],
  ['lstrip', stripper('left')],
  ['rstrip', stripper('right')],
  ['lower', (text) => text.toLowerCase()],
  ['upper', (text) => text.toUpperCase()],
  ['title', (text) => titled(text)],
  ['capitalize', (text) => capitalized(text)],
  [
    'startswith',
    (text, given) =>
      given
        .allow('prefix')
        .texts(0, 'prefix')
        .some((one) => text.startsWith(one)),
  ],
  [
    'endswith',
    (text, given) =>
      given
        .allow('suffix')
        .texts(0, 'suffix')
        .some((one) => text.endsWith(one)),
  ],
  ['split', (text, given) => split(text, given, 'left')],
  ['rsplit', (text, given) => split(text, given, 'right')],
  ['splitlines', (text, given) => splitLines(text, given.allow('keepends'))],
  ['partition', (text, given) => partition(text, given.allow('sep').text(0, 'sep'), 'left')],
  ['rpartition', (text, given) => partition(text, given.allow('sep').text(0, 'sep'), 'right')],
  ['replace', (text, given) => replaced(text, given.allow('old', 'new', 'count'))],
  ['join', (text, given) => joined(text, given.allow('iterable'))],
  ['find', (text, given) => position(text, text.indexOf(given.allow('sub').text(0, 'sub')))],
  ['rfind', (text, given) => position(text, text.lastIndexOf(given.allow('sub').text(0, 'sub')))],
  [
    'count',
    (text, given) => BigInt(text.split(needsSome(given.allow('sub').text(0, 'sub'))).length - 1),
  ],
  [
    'removeprefix',
    (text, given) => {
      const prefix = given.allow('prefix').text(0, 'prefix');
      return text.startsWith(prefix) ? text.slice(prefix.length) : text;
    },
  ],
  [
    'removesuffix',
    (text, given) => {
      const suffix = given.allow('suffix').text(0, 'suffix');
      return suffix !== '' && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
    },
  ],
  ['isspace', (text) => new RegExp(`^[${pythonSpaces}]+$`, 'u').test(text)],
]);

const unsupportedText = new Set(
  'casefold center encode expandtabs format format_map index isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable istitle isupper ljust maketrans rindex rjust swapcase translate zfill'.split(
    ' ',
  ),
);

export function textMethod(text: string, name: string): Method | undefined {
  const method = textMethods.get(name);
  if (method !== undefined) return (given) => method(text, new GivenValues(`str.${name}`, given));
  return unsupportedText.has(name) ? refusal(`str.${name}`) : undefined;
}

export function dictMethod(dict: Dict, name: string): Method | undefined {
  switch (name) {
    case 'items':
      return () => [...dict].map(([key, value]) => tupleOf(key, value));
    case 'keys':
      return () => [...dict.keys()];
    case 'values':
      return () => [...dict.values()];
    case 'copy':
      return () => new Map(dict);
    case 'get':
      return (given) => {
        const values = new GivenValues('dict.get', given);
        const key = values.at(0, 'key');
        const found = typeof key === 'string' ? dict.get(key) : undefined;
        return (
          found ??
          (typeof key === 'string' && dict.has(key) ? null : (values.at(1, 'default') ?? null))
        );
      };
    default:
      return /^(?:clear|fromkeys|pop|popitem|setdefault|update)$/.test(name)
        ? refusal(`dict.${name}`)
        : undefined;
  }
}

export function listMethod(list: readonly Value[], name: string): Method | undefined {
  switch (name) {
    case 'index':
      return (given) => {
        const wanted = new GivenValues('list.index', given).allow('value').at(0, 'value') ?? null;
        const index = list.findIndex((item) => isEqual(item, wanted));
        if (index < 0) throw new TemplateError('the value is not in the list');
        return BigInt(index);
      };
    case 'count':
      return (given) => {
        const wanted = new GivenValues('list.count', given).allow('value').at(0, 'value') ?? null;
        return BigInt(list.filter((item) => isEqual(item, wanted)).length);
      };
    case 'copy':
      return () => [...list];
    default:
      return /^(?:append|clear|extend|insert|pop|remove|reverse|sort)$/.test(name)
        ? refusal(`list.${name}`)
        : undefined;
  }
}

/** Engines run templates in a sandbox where values cannot be changed, so for most of these they refuse too. */
const refusal =
  (name: string): Method =>
  () => {
    throw new TemplateError(`${name}() is not supported in a chat template`);
  };

function needsSome(text: string): string {
  if (text === '') throw new TemplateError('an empty separator');
  return text;
}

const runsOfSpaces = new RegExp(`[${pythonSpaces}]+`, 'u');

function split(text: string, given: GivenValues, side: 'left' | 'right'): Value {
  const separator = given.allow('sep', 'maxsplit').optionalText(0, 'sep');
  const most = given.integer(1, 'maxsplit', -1);
  if (separator !== null)
    return limited(text.split(needsSome(separator)), { separator, most, side });
  const words = strip(text, null);
  if (most >= 0)
    throw new TemplateError(
      'str.split() at spaces with a limit is not supported in a chat template',
    );
  return words === '' ? [] : words.split(runsOfSpaces);
}

function limited(
  parts: readonly string[],
  rule: { readonly separator: string; readonly most: number; readonly side: 'left' | 'right' },
): readonly string[] {
  const surplus = parts.length - 1 - rule.most;
  if (rule.most < 0 || surplus <= 0) return parts;
  return rule.side === 'left'
    ? [...parts.slice(0, rule.most), parts.slice(rule.most).join(rule.separator)]
    : [parts.slice(0, surplus + 1).join(rule.separator), ...parts.slice(surplus + 1)];
}

function splitLines(text: string, given: GivenValues): Value {
  const keepsEnds = given.at(0, 'keepends') === true;
  const lines: string[] = [];
  const line =
    /([^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*)(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|$)/gu;
  for (const [whole, content = '', end = ''] of text.matchAll(line)) {
    if (whole === '') break;
    lines.push(keepsEnds ? content + end : content);
  }
  return lines;
}

function partition(text: string, separator: string, side: 'left' | 'right'): Value {
  needsSome(separator);
  const at = side === 'left' ? text.indexOf(separator) : text.lastIndexOf(separator);
  if (at < 0) return side === 'left' ? tupleOf(text, '', '') : tupleOf('', '', text);
  return tupleOf(text.slice(0, at), separator, text.slice(at + separator.length));
}

function replaced(text: string, given: GivenValues): Value {
  const from = given.text(0, 'old');
  const to = given.text(1, 'new');
  const most = given.integer(2, 'count', -1);
  if (most < 0 && from !== '') return text.replaceAll(from, () => to);
  const parts = text.split(needsSome(from));
  const kept = limited(parts, { separator: from, most, side: 'left' });
  return kept.join(to);
}

function joined(separator: string, given: GivenValues): Value {
  const texts = itemsOf(given.at(0, 'iterable') ?? null).map((item) => {
    if (typeof item === 'string') return item;
    throw new TemplateError(`join() needs texts, not ${typeName(item)}`);
  });
  return texts.join(separator);
}

/** Python counts characters, JavaScript half ones too. */
function position(text: string, unit: number): bigint {
  return unit < 0 ? -1n : BigInt(Array.from(text.slice(0, unit)).length);
}

export function capitalized(text: string): string {
  const [first = '', ...rest] = text;
  return titleCase(first) + rest.join('').toLowerCase();
}

function titled(text: string): string {
  return text.replace(/[\p{L}]+/gu, (word) => capitalized(word));
}

/** A few letters have a title form that is not their upper one, which JavaScript does not know. */
function titleCase(char: string): string {
  const upper = char.toUpperCase();
  if (
    upper.length > char.length ||
    /[\u01c4-\u01cc\u01f1-\u01f3\u10d0-\u10ff\u1f80-\u1fff]/u.test(char)
  )
    throw new TemplateError(`the title form of '${char}' is not supported in a chat template`);
  return upper;
}
