/**
 * Tools of a request. Those that the vendor runs, or that its models know without a schema (`web_search_…`, `bash_…`), are left out with a note; a choice that
 * forces one is refused. Deferred tools are offered from the start: the list of tools stands at the head of a prompt, and must not grow while a conversation does.
 */
import { textOf } from '../../../engines/shared/json.ts';
import type { ToolChoice, ToolSpec } from '../../items/conversation.ts';
import { RequestProblem } from '../dialect.ts';
import { parsed, toolSchema, type GivenRequest } from './request-schema.ts';

/** Stands in a list so that the list has a deferred tool; nobody may call it. */
const placeholder = 'DeferredToolPlaceholder';

export class GivenTools {
  readonly notes: string[] = [];
  readonly #specs: ToolSpec[] = [];
  readonly #leftOut = new Set<string>();

  constructor(given: readonly Readonly<Record<string, unknown>>[]) {
    for (const [index, tool] of given.entries()) this.add(tool, `tools.${index}`);
  }

  get specs(): readonly ToolSpec[] {
    return this.#specs;
  }

  add(tool: Readonly<Record<string, unknown>>, at: string): void {
    const type = textOf(tool['type']) ?? 'custom';
    const name = textOf(tool['name']) ?? type;
    if (type !== 'custom' || (name === placeholder && tool['defer_loading'] === true)) {
      this.#leftOut.add(name);
      this.notes.push(`the tool ${name} (${type}) is left out: it is no function of the client's`);
      return;
    }
    const { description, input_schema, strict } = parsed(toolSchema, tool, at);
    this.#specs.push({
      name,
      namespace: null,
      form: 'function',
      description: description ?? null,
      parameters: input_schema ?? null,
      isStrict: strict ?? null,
    });
  }

  has(name: string): boolean {
    return this.#specs.some((spec) => spec.name === name);
  }

  choice(given: NonNullable<GivenRequest['tool_choice']>): ToolChoice {
    switch (given.type) {
      case 'any':
        return { kind: 'required' };
      case 'auto':
      case 'none':
        return { kind: given.type };
      case 'tool':
        if (this.#leftOut.has(given.name))
          throw new RequestProblem(
            `demands ${given.name}, which is the vendor’s and does not run here; choose another one`,
            { field: 'tool_choice' },
          );
        return { kind: 'tool', tool: { name: given.name, namespace: null } };
    }
  }
}
