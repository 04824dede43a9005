/** Calls written as one JSON object with a name and arguments. The arguments stay as they were sampled. */
import { parseJson } from '../templates/python-json.ts';
import type { CallFormat, ParsedCall } from './turn-format.ts';

export const jsonCalls: CallFormat = {
  open: '<tool_call>',
  close: '</tool_call>',
  gap: '\n',
  parse: (body) => {
    const call = parseCall(body.trim());
    return call === null ? null : [call];
  },
};

function parseCall(text: string): ParsedCall | null {
  const members = membersOf(text);
  const name = members?.get('name');
  if (members === null || name === undefined) return null;
  const called = stringOf(name);
  const given = members.get('arguments') ?? members.get('parameters') ?? '{}';
  // Some models write the arguments as a text that holds JSON.
  const source = given.startsWith('"') ? stringOf(given) : given;
  if (called === null || source === null || !isObject(source)) return null;
  return { name: called, arguments: source };
}

function stringOf(json: string): string | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}

function isObject(json: string): boolean {
  try {
    return parseJson(json) instanceof Map;
  } catch {
    return false;
  }
}

/** The source text of each member of an object; null = the text is no JSON object. */
function membersOf(text: string): ReadonlyMap<string, string> | null {
  if (!isObject(text)) return null;
  const members = new Map<string, string>();
  let depth = 0;
  let start = -1;
  let key: string | null = null;
  const close = (end: number): void => {
    if (key !== null) members.set(key, text.slice(start, end).trim());
    key = null;
  };
  // Valid JSON: only brackets, and texts to pass over, have to be told apart.
  for (const match of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    const [token] = match;
    const { index } = match;
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') {
      depth -= 1;
      if (depth === 0) close(index);
    } else if (depth === 1 && token === ',') close(index);
    else if (depth === 1 && token === ':' && key === null) {
      const before = /"(?:[^"\\]|\\.)*"\s*$/.exec(text.slice(0, index));
      key = before === null ? null : stringOf(before[0].trim());
      start = index + 1;
    }
  }
  return members;
}
