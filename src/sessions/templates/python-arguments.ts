/** Reads the arguments of methods, filters and tests by place or name. */
import {
  type Arguments,
  demand,
  isList,
  TemplateError,
  typeName,
  type Value,
} from './python-values.ts';

export class GivenValues {
  readonly #owner: string;
  readonly #given: Arguments;

  constructor(owner: string, given: Arguments) {
    this.#owner = owner;
    this.#given = given;
  }

  /** At most these, or an error: what we do not know must not be passed over. */
  allow(...names: readonly string[]): this {
    const unknown = [...this.#given.named.keys()].find((name) => !names.includes(name));
    if (unknown !== undefined) throw this.wrong(`takes no argument '${unknown}'`);
    if (this.#given.positional.length > names.length)
      throw this.wrong(`takes at most ${names.length} arguments`);
    return this;
  }

  at(index: number, name: string): Value | undefined {
    const { positional, named } = this.#given;
    return index < positional.length ? positional[index] : named.get(name);
  }

  text(index: number, name: string): string {
    const value = this.at(index, name);
    if (typeof value === 'string') return value;
    throw this.wrong(`needs a str, not ${value === undefined ? 'nothing' : typeName(value)}`);
  }

  /** null = None, or not given. */
  optionalText(index: number, name: string): string | null {
    const value = this.at(index, name) ?? null;
    return value === null ? null : this.text(index, name);
  }

  integer(index: number, name: string, otherwise: number): number {
    const value = this.at(index, name);
    if (value === undefined) return otherwise;
    if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value);
    throw this.wrong(`needs an int, not ${typeName(value)}`);
  }

  /** One text, or several in a list. */
  texts(index: number, name: string): readonly string[] {
    const value = this.at(index, name);
    if (isList(value ?? null))
      return (value as readonly Value[]).map((item) => {
        if (typeof item === 'string') return item;
        throw this.wrong('needs texts');
      });
    return [this.text(index, name)];
  }

  wrong(problem: string): TemplateError {
    return new TemplateError(`${this.#owner} ${problem}`);
  }
}

export function needText(owner: string, value: Value): string {
  const given = demand(value);
  if (typeof given === 'string') return given;
  throw new TemplateError(`${owner} needs a str, not ${typeName(given)}`);
}
