/**
 * What a row of a dataset is. Metadata mode: every row has a JSON object in `metadata`, prompts are optional. Prompt mode: every row has `user_prompt` and
 * `ground_truth` (or `label`; the first wins). `system_prompt` is always optional, further columns are ignored, names are case-sensitive.
 */
import { isExactNumber, parseDatasetJson } from './dataset-json.ts';

export type RowMode = 'metadata' | 'prompt';

/** All that a row says; other columns are ignored. */
export const rowColumns: readonly string[] = [
  'metadata',
  'system_prompt',
  'user_prompt',
  'ground_truth',
  'label',
];

/** As the rollout request takes it. */
export interface EvalRow {
  readonly messages: readonly { readonly role: 'system' | 'user'; readonly content: string }[];
  readonly label: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

export type RawRow = Readonly<Record<string, unknown>>;

/** Remembers of which kind the values of a key are: they must not change from row to row. */
export class RowContract {
  readonly #mode: RowMode;
  readonly #kinds = new Map<string, string>();

  constructor(mode: RowMode) {
    this.#mode = mode;
  }

  /** Says everything that is wrong with the row through `complain`; its answer counts only when that was nothing. */
  read(row: RawRow, complain: (column: string, problem: string) => void): EvalRow {
    const isPrompt = this.#mode === 'prompt';
    const text = (column: string, isNeeded: boolean): string | null => {
      const value = row[column] ?? null;
      if (value !== null && typeof value !== 'string') {
        complain(column, `expected a text, found ${kindOf(value)}`);
        return null;
      }
      if (value !== null && value.trim() !== '') return value;
      if (isNeeded) complain(column, value === null ? 'is missing' : 'is blank');
      return null;
    };
    const system = text('system_prompt', false);
    const user = text('user_prompt', isPrompt);
    const truth = text('ground_truth', false) ?? text('label', false);
    if (isPrompt && truth === null) complain('ground_truth', 'is missing or blank');
    return {
      messages: [
        ...(system === null ? [] : [{ role: 'system' as const, content: system }]),
        ...(user === null ? [] : [{ role: 'user' as const, content: user }]),
      ],
      label: truth,
      metadata: this.#metadata(row['metadata'] ?? null, complain),
    };
  }

  #metadata(
    given: unknown,
    complain: (column: string, problem: string) => void,
  ): Readonly<Record<string, unknown>> | null {
    const say = (problem: string): null => {
      complain('metadata', problem);
      return null;
    };
    const isNeeded = this.#mode === 'metadata';
    let value = given;
    if (typeof value === 'string' && value.trim() !== '') {
      const parsed = parseDatasetJson(value);
      if ('problem' in parsed) return say(`the text ${parsed.problem}`);
      for (const key of parsed.tooLarge) say(`${key} is a number beyond 64 bits`);
      ({ value } = parsed);
    }
    const isBlank = value === null || (typeof value === 'string' && value.trim() === '');
    if (isBlank) return isNeeded ? say('is missing or blank') : null;
    if (!isObject(value)) return say(`expected a JSON object, found ${kindOf(value)}`);
    if (Object.keys(value).length === 0) return isNeeded ? say('is an empty object') : null;
    this.#lookInto(value, '', complain);
    return value;
  }

  #lookInto(
    value: Readonly<Record<string, unknown>>,
    before: string,
    complain: (column: string, problem: string) => void,
  ): void {
    for (const [name, part] of Object.entries(value)) {
      const key = before + name;
      if (part === null) continue;
      const kind = kindOf(part);
      const known = this.#kinds.get(key) ?? kind;
      this.#kinds.set(key, known);
      if (known !== kind)
        complain(`metadata.${key}`, `is ${kind} here and ${known} in a row before`);
      if (!isObject(part)) continue;
      if (Object.keys(part).length === 0) complain(`metadata.${key}`, 'is an empty object');
      this.#lookInto(part, `${key}.`, complain);
    }
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)
  );
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (isExactNumber(value)) return 'a number';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
