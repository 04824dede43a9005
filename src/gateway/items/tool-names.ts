/**
 * Tools have namespaces and free names at the edge; the upstream knows one flat list of function names. A name depends on the tool's own identity and on
 * tools declared before it, never on later ones: tools that join in a later turn leave the prompt so far as it was.
 *
 * - A tool without a namespace whose name is legal upstream keeps it.
 * - `namespace__name` where a namespace is declared.
 * - What is not legal (other letters, more than 64 characters) is made legal and ends in a hash of the identity.
 * - Whoever comes to a name that is taken gets the hash as well.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { RequestProblem } from '../dialects/dialect.ts';
import type { ToolForm, ToolIdentity, ToolSpec } from './conversation.ts';

const maxNameChars = 64;
const hashChars = 8;

export interface NamedTool {
  readonly tool: ToolIdentity;
  readonly form: ToolForm;
}

export interface FlatTool {
  /** As the upstream knows it. */
  readonly name: string;
  readonly spec: ToolSpec;
}

export class ToolNames {
  readonly #flat: FlatTool[] = [];
  readonly #nameOf = new Map<string, string>();
  readonly #byName = new Map<string, FlatTool>();

  /** A tool that is declared twice in the same words counts once; in other words it is refused. */
  constructor(specs: readonly ToolSpec[]) {
    for (const spec of specs) this.#declare(spec);
  }

  /** In the order of their declaration. */
  get tools(): readonly FlatTool[] {
    return this.#flat;
  }

  has(tool: ToolIdentity): boolean {
    return this.#nameOf.has(keyOf(tool));
  }

  /** The upstream's name, also of a tool that only the history knows. */
  upstream(tool: ToolIdentity): string {
    return this.#nameOf.get(keyOf(tool)) ?? this.#freeName(tool);
  }

  /** The client's tool behind a sampled name. A name that no tool has is the model's invention and stays as it is. */
  client(name: string): NamedTool {
    const known = this.#byName.get(name)?.spec;
    if (known === undefined) return { tool: { name, namespace: null }, form: 'function' };
    return { tool: { name: known.name, namespace: known.namespace }, form: known.form };
  }

  #declare(spec: ToolSpec): void {
    const key = keyOf(spec);
    const taken = this.#nameOf.get(key);
    if (taken !== undefined) {
      if (isDeepStrictEqual(this.#byName.get(taken)?.spec, spec)) return;
      throw new RequestProblem(
        `tools: ${shown(spec)} is declared twice in different ways; declare it once`,
        { field: 'tools' },
      );
    }
    const flat = { name: this.#freeName(spec), spec };
    this.#nameOf.set(key, flat.name);
    this.#byName.set(flat.name, flat);
    this.#flat.push(flat);
  }

  #freeName(tool: ToolIdentity): string {
    const plain = tool.namespace === null ? tool.name : `${tool.namespace}__${tool.name}`;
    const isLegal = /^[a-zA-Z0-9_-]{1,64}$/.test(plain);
    return isLegal && !this.#byName.has(plain) ? plain : hashedName(plain, tool);
  }
}

function hashedName(plain: string, tool: ToolIdentity): string {
  const hash = createHash('sha256').update(keyOf(tool)).digest('hex').slice(0, hashChars);
  const legal = plain.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, maxNameChars - hashChars - 1);
  return `${legal}_${hash}`;
}

function keyOf({ name, namespace }: ToolIdentity): string {
  return JSON.stringify([namespace, name]);
}

function shown({ name, namespace }: ToolIdentity): string {
  return JSON.stringify(namespace === null ? name : `${namespace}.${name}`);
}
