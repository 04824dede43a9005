/** What a check of an instruction is made of. `docs/rewards.md` lists the instructions. */
import { RolloutError } from '../../core/errors.ts';

/** Whether a response that is not blank follows an instruction. Throws REWARD_LABEL_INVALID where an argument is missing. */
export type InstructionCheck = (response: string, args: InstructionArguments) => boolean;

/** What `metadata.kwargs` says of one instruction. */
export class InstructionArguments {
  readonly #id: string;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(id: string, values: Readonly<Record<string, unknown>>) {
    this.#id = id;
    this.#values = values;
  }

  number(name: string): number {
    const value = this.#values[name];
    return typeof value === 'number' && value >= 0 ? value : this.#refuse(name, 'a number');
  }

  text(name: string): string {
    const value = this.#values[name];
    return typeof value === 'string' && value !== '' ? value : this.#refuse(name, 'a text');
  }

  texts(name: string): readonly string[] {
    const value = this.#values[name];
    const isList = Array.isArray(value) && value.length > 0;
    return isList && value.every((one) => typeof one === 'string')
      ? value
      : this.#refuse(name, 'a list of texts');
  }

  /** Compares a count as the relation `name` says. */
  holds(count: number, name: string, threshold: number): boolean {
    const relation = this.#values[name];
    if (relation === 'less than') return count < threshold;
    return relation === 'at least'
      ? count >= threshold
      : this.#refuse(name, '“less than” or “at least”');
  }

  #refuse(name: string, wanted: string): never {
    throw new RolloutError(
      'REWARD_LABEL_INVALID',
      `The instruction ${this.#id} needs ${wanted} as ${name}.`,
      {
        ...{ phase: 'verifier', field: `metadata.kwargs.${name}` },
        remedy: 'Correct the row: kwargs has one object for each of instruction_id_list.',
      },
    );
  }
}
