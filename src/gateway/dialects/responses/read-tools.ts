/**
 * Tools of a request. Functions and custom tools are offered to the model, those of a namespace with it; what only the vendor's servers can carry out is left out
 * and noted. The namespace `functions` is the clients' word for "no namespace".
 */
import { RequestProblem } from '../dialect.ts';
import type { ToolChoice, ToolIdentity, ToolSpec } from '../../items/conversation.ts';
import {
  customToolSchema,
  namespaceSchema,
  shaped,
  toolSchema,
  typedSchema,
} from './request-shape.ts';

/** Tools in the order of their first declaration; a later declaration of the same tool takes its place. */
export class DeclaredTools {
  readonly #specs = new Map<string, ToolSpec>();
  readonly #notes: string[];

  constructor(notes: string[]) {
    this.#notes = notes;
  }

  get specs(): readonly ToolSpec[] {
    return [...this.#specs.values()];
  }

  /** `at` = the field that holds the list. */
  declare(tools: readonly unknown[], at: string): void {
    for (const [index, tool] of tools.entries()) this.#declare(tool, `${at}[${index}]`);
  }

  #declare(tool: unknown, at: string): void {
    const { type } = shaped(typedSchema, tool, at);
    if (type === 'namespace') {
      const { name, description, tools } = shaped(namespaceSchema, tool, at);
      let about = description ?? null;
      for (const [index, inner] of tools.entries()) {
        const within = { namespace: plainNamespace(name), about };
        // What the namespace says of itself stands once, with its first tool.
        if (this.#declareOne(inner, `${at}.tools[${index}]`, within)) about = null;
      }
      return;
    }
    this.#declareOne(tool, at, { namespace: null, about: null });
  }

  /** Whether the model is offered it. */
  #declareOne(tool: unknown, at: string, within: Within): boolean {
    const { type } = shaped(typedSchema, tool, at);
    if (type === 'function') this.#put(functionTool(tool, at, within));
    else if (type === 'custom') this.#put(customTool(tool, at, within));
    else {
      this.#notes.push(`tools of type ${JSON.stringify(type)} are left out`);
      return false;
    }
    return true;
  }

  #put(spec: ToolSpec): void {
    this.#specs.set(JSON.stringify([spec.namespace, spec.name]), spec);
  }
}

interface Within {
  readonly namespace: string | null;
  /** What the namespace says of itself. */
  readonly about: string | null;
}

/** As it is known further in: `functions` is none. */
export function plainNamespace(namespace: string | null | undefined): string | null {
  return namespace === undefined || namespace === '' || namespace === 'functions'
    ? null
    : namespace;
}

export function readToolChoice(
  choice: unknown,
  specs: readonly ToolSpec[],
): { readonly toolChoice: ToolChoice | null; readonly tools: readonly ToolSpec[] } {
  const chosen = choice ?? null;
  if (chosen === null) return { toolChoice: null, tools: specs };
  if (typeof chosen === 'string') return { toolChoice: moded(chosen, specs), tools: specs };
  const { type, ...fields } = shaped(typedSchema, chosen, 'tool_choice');
  if (type === 'allowed_tools') {
    const { mode, tools } = fields;
    if (!Array.isArray(tools) || typeof mode !== 'string')
      throw refused('allowed_tools needs a mode and a list of tools');
    const allowed = (tools as readonly unknown[]).map((tool) => wanted(tool, specs));
    const kept = specs.filter((spec) => allowed.includes(spec));
    return { toolChoice: moded(mode, kept), tools: kept };
  }
  const spec = wanted(chosen, specs);
  if (spec === null) throw refused(`${JSON.stringify(fields['name'] ?? type)} is not offered`);
  const { name, namespace } = spec;
  return { toolChoice: { kind: 'tool', tool: { name, namespace } }, tools: specs };
}

/** Without tools the choice says nothing, unless it asks for one. */
function moded(mode: string, specs: readonly ToolSpec[]): ToolChoice | null {
  if (mode !== 'auto' && mode !== 'none' && mode !== 'required')
    throw refused(`${JSON.stringify(mode)} is no choice`);
  if (specs.length > 0) return { kind: mode };
  if (mode === 'required') throw refused('a call is required, but no tool is offered');
  return null;
}

function wanted(tool: unknown, specs: readonly ToolSpec[]): ToolSpec | null {
  const { type, name, namespace } = shaped(typedSchema, tool, 'tool_choice');
  if ((type !== 'function' && type !== 'custom') || typeof name !== 'string') return null;
  const named = specs.filter((spec) => spec.name === name && spec.form === type);
  if (typeof namespace !== 'string')
    return named.find((spec) => spec.namespace === null) ?? only(named);
  return named.find((spec) => spec.namespace === plainNamespace(namespace)) ?? null;
}

function only(specs: readonly ToolSpec[]): ToolSpec | null {
  return specs.length === 1 ? (specs[0] ?? null) : null;
}

function functionTool(tool: unknown, at: string, within: Within): ToolSpec {
  const { name, description, parameters, strict } = shaped(toolSchema, tool, at);
  return {
    ...identity(name, within),
    form: 'function',
    description: described([within.about, description]),
    parameters: parameters ?? null,
    isStrict: strict ?? null,
  };
}

/** Chat endpoints know no grammars: the model reads it. */
function customTool(tool: unknown, at: string, within: Within): ToolSpec {
  const { name, description, format } = shaped(customToolSchema, tool, at);
  const grammar =
    format?.type === 'grammar'
      ? `The input follows this ${format.syntax} grammar:\n${format.definition}`
      : null;
  return {
    ...identity(name, within),
    form: 'custom',
    description: described([within.about, description, grammar]),
    parameters: null,
    isStrict: null,
  };
}

function identity(name: string, { namespace }: Within): ToolIdentity {
  return { name, namespace };
}

function described(pieces: readonly (string | null | undefined)[]): string | null {
  const said = pieces.filter((piece) => typeof piece === 'string' && piece !== '');
  return said.length === 0 ? null : said.join('\n\n');
}

function refused(message: string): RequestProblem {
  return new RequestProblem(`tool_choice: ${message}`, { field: 'tool_choice' });
}
