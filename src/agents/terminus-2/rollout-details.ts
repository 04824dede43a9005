/**
 * Ids and log-probabilities for trainers, in Harbor's form: one list per field, one entry per turn. A field that no turn has is left out; a turn that
 * lacks a field which others have holds an empty list there, so that entries of different fields stay aligned.
 */
import type { ModelResult } from '../../engines/model-call.ts';

type Ids = readonly number[];

interface TurnDetails {
  readonly promptIds: Ids | null;
  readonly outputIds: Ids | null;
  readonly logprobs: Ids | null;
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface RolloutDetail {
  readonly prompt_token_ids?: readonly Ids[];
  readonly completion_token_ids?: readonly Ids[];
  readonly logprobs?: readonly Ids[];
  readonly extra?: Readonly<Record<string, readonly unknown[]>>;
}

/** The turns of one conversation. Arrays are the engine's, never copied or changed. */
export class ConversationDetails {
  readonly #turns: TurnDetails[] = [];

  /** `isTold`: a known secret is in the conversation by now, so its ids are not given away. */
  add(result: ModelResult, { isTold }: { readonly isTold: boolean }): void {
    const { promptIds, outputIds, logprobs, extra } = result;
    this.#turns.push(
      isTold
        ? { promptIds: null, outputIds: null, logprobs: null, extra: {} }
        : { promptIds, outputIds, logprobs: outputIds === null ? null : logprobs, extra },
    );
  }

  /** null = nothing was collected. */
  toDetail(): RolloutDetail | null {
    const detail: RolloutDetail = {
      ...field('prompt_token_ids', this.#column('promptIds')),
      ...field('completion_token_ids', this.#column('outputIds')),
      ...field('logprobs', this.#column('logprobs')),
      ...field('extra', this.#extra()),
    };
    return Object.keys(detail).length === 0 ? null : detail;
  }

  #column(name: 'promptIds' | 'outputIds' | 'logprobs'): readonly Ids[] | null {
    if (this.#turns.every((turn) => turn[name] === null)) return null;
    return this.#turns.map((turn) => turn[name] ?? []);
  }

  #extra(): Readonly<Record<string, readonly unknown[]>> | null {
    const names = new Set(this.#turns.flatMap(({ extra }) => Object.keys(extra)));
    if (names.size === 0) return null;
    return Object.fromEntries(
      [...names].map((name) => [name, this.#turns.map(({ extra }) => extra[name] ?? null)]),
    );
  }
}

function field<K extends keyof RolloutDetail>(
  name: K,
  value: RolloutDetail[K] | null,
): Partial<RolloutDetail> {
  return value === null ? {} : { [name]: value };
}
