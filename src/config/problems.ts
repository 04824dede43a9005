import { RolloutError } from '../core/errors.ts';

export interface Problem {
  /** Flag or dotted path. */
  readonly field: string;
  readonly message: string;
  readonly remedy: string;
}

/** Collects everything that is wrong with a configuration, so that one run reports all of it. */
export class Problems {
  readonly #found: Problem[] = [];

  get found(): readonly Problem[] {
    return this.#found;
  }

  add(field: string, message: string, remedy: string): void {
    this.#found.push({ field, message, remedy });
  }

  /** Throws CONFIG_INVALID when anything was found: one problem as itself, several as a list with the first one's field. */
  throwIfAny(): void {
    const [first] = this.#found;
    if (first === undefined) return;
    if (this.#found.length === 1)
      throw new RolloutError('CONFIG_INVALID', first.message, {
        phase: 'config',
        field: first.field,
        remedy: first.remedy,
      });
    throw new RolloutError('CONFIG_INVALID', `${this.#found.length} problems`, {
      phase: 'config',
      field: first.field,
      remedy: 'Correct every line below.',
      detail: this.#found
        .map(({ field, message, remedy }) => `[${field}]: ${message} — ${remedy}`)
        .join('\n'),
    });
  }
}
