import { type Dict, Namespace, TemplateError, Undefined, type Value } from './python-values.ts';

/**
 * Names and their values. Loops and macros open a scope of their own, so that what they set is gone after each round; branches do not.
 */
export class Scope {
  readonly #values = new Map<string, Value>();
  readonly #outer: Scope | Dict;

  constructor(outer: Scope | Dict) {
    this.#outer = outer;
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }

  get(name: string): Value {
    const own = this.#values.get(name);
    if (own !== undefined) return own;
    return (
      this.#outer.get(name) ?? (this.#has(name) ? null : new Undefined(`'${name}' is undefined`))
    );
  }

  setField(namespace: string, name: string, value: Value): void {
    const target = this.get(namespace);
    if (!(target instanceof Namespace))
      throw new TemplateError('cannot assign attribute on non-namespace object');
    target.fields.set(name, value);
  }

  #has(name: string): boolean {
    if (this.#values.has(name)) return true;
    return this.#outer instanceof Scope ? this.#outer.#has(name) : this.#outer.has(name);
  }
}
