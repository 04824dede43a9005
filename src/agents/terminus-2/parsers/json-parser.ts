import { isBlank, isOnlyBlanks } from '../strip.ts';
import { readJsonCommands } from './json-commands.ts';
import { findBalancedObject, findShallowObjects, missingBraces } from './json-objects.ts';
import { jsonTexts } from './json-texts.ts';
import { characterCount, JsonComplaint, readJson, type JsonValue } from './json-value.ts';
import type { ParsedReply, ReplyParser } from './parsed-reply.ts';
import { pythonRepr } from './python-repr.ts';
import { warningList, wrongOrder } from './warning-list.ts';

const requiredFields = ['analysis', 'plan', 'commands'];
const quotedWholeBelow = 200;
const previewLength = 100;

/**
 * Reads replies that are one JSON object. A reply with an error is read again with two repairs, in order: closing braces added, then the first
 * shallow object in it that is JSON. A repair counts only when nothing is wrong with what it makes.
 */
export const jsonParser: ReplyParser = {
  name: 'json',
  parse(reply) {
    const first = parseOnce(reply);
    if (first.error === '') return first.reply;
    for (const repair of [addBraces, extractObject]) {
      const repaired = repair(reply, first.isSyntax);
      if (repaired === null) continue;
      const again = parseOnce(repaired.text);
      if (again.error !== '') continue;
      const note = warningList([repaired.note]);
      const warnings = again.reply.warnings === '' ? note : `${note}\n${again.reply.warnings}`;
      return { ...again.reply, warnings };
    }
    return first.reply;
  },
  /** An object that was cut off is not JSON. */
  salvage: () => null,
};

interface Attempt {
  readonly reply: ParsedReply;
  readonly error: string;
  /** No object was found, or it is not JSON. */
  readonly isSyntax: boolean;
}

function parseOnce(text: string): Attempt {
  const warnings: string[] = [];
  const place = findBalancedObject(text);
  if (place === null)
    return failed(jsonTexts.noJson(), { warnings: [jsonTexts.noObject()], isSyntax: true });
  if (!isOnlyBlanks(text.slice(0, place[0]))) warnings.push(jsonTexts.textBefore());
  if (!isOnlyBlanks(text.slice(place[1]))) warnings.push(jsonTexts.textAfter());
  const content = text.slice(...place);
  const fields = readFields(content);
  if (typeof fields === 'string') return failed(fields, { warnings, isSyntax: true });
  return parseFields(fields, content, warnings);
}

function readFields(content: string): ReadonlyMap<string, JsonValue> | string {
  try {
    const value = readJson(content);
    // What begins with a brace is an object.
    return value instanceof Map ? value : new Map<string, JsonValue>();
  } catch (error) {
    if (!(error instanceof JsonComplaint)) throw error;
    if (characterCount(content) < quotedWholeBelow)
      return jsonTexts.invalidJson(error.message, pythonRepr(content));
    const preview = Array.from(content.slice(0, previewLength * 2)).slice(0, previewLength);
    return jsonTexts.invalidLongJson(error.message, pythonRepr(preview.join('')));
  }
}

function parseFields(
  fields: ReadonlyMap<string, JsonValue>,
  content: string,
  warnings: string[],
): Attempt {
  const missing = requiredFields.filter((name) => !fields.has(name));
  if (missing.length > 0) return failed(jsonTexts.missingFields(missing), { warnings });
  const [analysis = null, plan = null, items = null] = requiredFields.map((n) => fields.get(n));
  if (typeof analysis !== 'string') warnings.push(jsonTexts.fieldNotText('analysis'));
  if (typeof plan !== 'string') warnings.push(jsonTexts.fieldNotText('plan'));
  if (!Array.isArray(items)) return failed(jsonTexts.commandsNotArray(), { warnings });
  const order = wrongOrder(requiredFields, (name) => keyPlace(content, name));
  if (order !== null) warnings.push(jsonTexts.wrongOrder(order.found, order.expected));
  const complete = fields.get('task_complete') ?? null;
  if (complete !== null && typeof complete !== 'boolean' && typeof complete !== 'string')
    warnings.push(jsonTexts.completeNotBoolean());
  const isTaskComplete = meansComplete(complete);
  const thoughts = { analysis: asText(analysis), plan: asText(plan) };
  const commands = readJsonCommands(items as readonly JsonValue[], warnings);
  if (typeof commands !== 'string')
    return succeeded({ ...thoughts, commands, isTaskComplete, warnings });
  if (!isTaskComplete) return failed(commands, { warnings, thoughts });
  return succeeded({
    ...thoughts,
    commands: [],
    isTaskComplete,
    warnings: [...warnings, commands],
  });
}

/** A string must say so; of other values the truthy ones count: 1, a list that is not empty. */
function meansComplete(value: JsonValue): boolean {
  if (typeof value === 'string') return ['true', '1', 'yes'].includes(value.toLowerCase());
  if (value instanceof Map) return value.size > 0;
  if (Array.isArray(value)) return value.length > 0;
  // NaN is truthy where these rules come from.
  return typeof value === 'number' ? value !== 0 : value === true;
}

/** A thought of another type is shown as it was written. */
function asText(value: JsonValue): string {
  if (typeof value === 'string') return value;
  if (value === null) return '';
  return JSON.stringify(value, (_key, part: JsonValue): unknown =>
    part instanceof Map ? Object.fromEntries<unknown>(part) : part,
  );
}

/** Where the key is first spelt in the text, at any depth and also inside strings; -1 = nowhere. */
function keyPlace(content: string, name: string): number {
  const key = `"${name}"`;
  for (let at = content.indexOf(key); at !== -1; at = content.indexOf(key, at + 1)) {
    let after = at + key.length;
    while (isBlank(content.charAt(after))) after++;
    if (content.charAt(after) === ':') return at;
  }
  return -1;
}

function succeeded(
  parsed: Omit<ParsedReply, 'error' | 'warnings'> & { readonly warnings: readonly string[] },
): Attempt {
  const reply = { ...parsed, error: '', warnings: warningList(parsed.warnings) };
  return { reply, error: '', isSyntax: false };
}

function failed(
  error: string,
  rest: {
    readonly warnings: readonly string[];
    readonly isSyntax?: boolean;
    readonly thoughts?: { readonly analysis: string; readonly plan: string };
  },
): Attempt {
  const { analysis, plan } = rest.thoughts ?? { analysis: '', plan: '' };
  const warnings = warningList(rest.warnings);
  const reply = { commands: [], isTaskComplete: false, error, warnings, analysis, plan };
  return { reply, error, isSyntax: rest.isSyntax ?? false };
}

interface Repaired {
  readonly text: string;
  readonly note: string;
}

function addBraces(reply: string, isSyntax: boolean): Repaired | null {
  const missing = missingBraces(reply);
  if (!isSyntax || missing <= 0) return null;
  return { text: reply + '}'.repeat(missing), note: jsonTexts.bracesAdded() };
}

function extractObject(reply: string): Repaired | null {
  for (const text of findShallowObjects(reply)) {
    // Spares most of what stands in braces the cost of a complaint.
    if (!/^\{[ \t\n\r]*["}]/.test(text)) continue;
    try {
      readJson(text);
    } catch (error) {
      if (error instanceof JsonComplaint) continue;
      throw error;
    }
    return { text, note: jsonTexts.objectExtracted() };
  }
  return null;
}
