/** Arguments whose text does not say their type: the tool's schema does. */
import type { ToolDefinition } from '../../engines/chat-message.ts';
import { dumpJson, parseJson } from '../templates/python-json.ts';
import type { Value } from '../templates/python-values.ts';

/** Types of a tool's parameters by name; null = no such tool. */
export type ParameterTypes = ReadonlyMap<string, readonly string[]> | null;

export function parameterTypes(tools: readonly ToolDefinition[], name: string): ParameterTypes {
  const tool = tools.find((one) => one.function.name === name);
  const properties = tool?.function.parameters?.['properties'];
  if (typeof properties !== 'object' || properties === null) return null;
  return new Map(Object.entries(properties).map(([key, schema]) => [key, typesOf(schema)]));
}

function typesOf(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { type, anyOf } = schema as { readonly type?: unknown; readonly anyOf?: unknown };
  if (typeof type === 'string') return [type];
  if (Array.isArray(type)) return type.filter((one) => typeof one === 'string');
  return Array.isArray(anyOf) ? anyOf.flatMap(typesOf) : [];
}

/** JSON of an argument: as it stands where it is of a type that is no text, else as a text. */
export function typedJson(text: string, types: readonly string[] | undefined): string {
  if (types === undefined || types.length === 0 || types.includes('string')) return dumpJson(text);
  // What a template prints of Python's own constants.
  const constant = pythonConstants.get(text.trim());
  if (constant !== undefined) return constant;
  // A text in quotes is a text with quotes: templates print texts without any.
  return !/^["\s]|\s$/.test(text) && isJson(text) ? text : dumpJson(text);
}

/** One object of members that are JSON already. */
export function objectOf(members: readonly (readonly [string, string])[]): string {
  return `{${members.map(([key, json]) => `${dumpJson(key)}: ${json}`).join(', ')}}`;
}

const pythonConstants = new Map([
  ['True', 'true'],
  ['False', 'false'],
  ['None', 'null'],
]);

export function isJson(text: string): boolean {
  return jsonValue(text) !== undefined;
}

function jsonValue(text: string): Value | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
