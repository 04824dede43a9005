/**
 * What makes a message of a request the same as one that a session holds. Agents send their history anew with every request and spell it in their own way:
 * arguments of tool calls printed again, reasoning left out, keys of the wire kept. Each matcher accepts what the one before it accepts, and more.
 */
import { looselyEqualArguments } from './loose-arguments.ts';

/** A message as a request spells it. */
export type Message = Readonly<Record<string, unknown>>;

/** Changes neither message. */
export type MessageMatcher = (stored: Message, given: Message) => boolean;

/** Role, content, reasoning and tool calls; null, "" and [] are equal. All else of a message is not looked at. */
export const strictMatcher: MessageMatcher = (stored, given) =>
  compared.every((key) => equal(plain(stored, key), plain(given, key)));

/** As strict, but arguments of tool calls are equal when they say the same. */
export const looseToolCallMatcher: MessageMatcher = (stored, given) =>
  strictMatcher(stored, given) ||
  (compared
    .filter((key) => key !== 'tool_calls')
    .every((key) => equal(plain(stored, key), plain(given, key))) &&
    haveEqualCalls(plain(stored, 'tool_calls'), plain(given, 'tool_calls')));

export const roleContentMatcher: MessageMatcher = (stored, given) =>
  ['role', 'content'].every((key) => equal(plain(stored, key), plain(given, key)));

export const matchers: Readonly<Record<string, MessageMatcher>> = {
  strict: strictMatcher,
  loose_tool_call: looseToolCallMatcher,
  role_content_only: roleContentMatcher,
};

const compared = ['role', 'content', 'reasoning_content', 'tool_calls'] as const;

/** `index` is a key of streams that clients keep or drop. */
function plain(message: Message, key: string): unknown {
  const value = message[key] ?? null;
  if (value === '' || (Array.isArray(value) && value.length === 0)) return null;
  if (key !== 'tool_calls' || !Array.isArray(value)) return value;
  return (value as unknown[]).map((call) => (isObject(call) ? without(call, 'index') : call));
}

function haveEqualCalls(stored: unknown, given: unknown): boolean {
  if (!Array.isArray(stored) || !Array.isArray(given)) return equal(stored, given);
  if (stored.length !== given.length) return false;
  return stored.every((call: unknown, at) => isEqualCall(call, given[at]));
}

function isEqualCall(stored: unknown, given: unknown): boolean {
  if (!isObject(stored) || !isObject(given)) return equal(stored, given);
  const [own, other] = [stored['function'], given['function']];
  if (!isObject(own) || !isObject(other)) return equal(stored, given);
  return (
    equal(without(stored, 'function'), without(given, 'function')) &&
    equal(without(own, 'arguments'), without(other, 'arguments')) &&
    Object.hasOwn(own, 'arguments') === Object.hasOwn(other, 'arguments') &&
    looselyEqualArguments(own['arguments'], other['arguments'])
  );
}

/** Values of JSON, by value; deeper than this is never equal, and no error. */
const maxDepth = 500;

export function equal(left: unknown, right: unknown, depth = 0): boolean {
  if (left === right) return true;
  if (depth > maxDepth) return false;
  if (Array.isArray(left) || Array.isArray(right))
    return (
      Array.isArray(left) &&
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((value: unknown, at) => equal(value, right[at], depth + 1))
    );
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && equal(left[key], right[key], depth + 1))
  );
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function without(value: Readonly<Record<string, unknown>>, key: string): Message {
  if (!Object.hasOwn(value, key)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
}
