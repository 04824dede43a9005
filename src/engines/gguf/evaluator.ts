/**
 * One sequence in the model's memory. What it holds is kept as long as the next text begins with it.
 *
 * A log-probability must not depend on how a text was cut into pieces, or what was reported while sampling could not be found again by scoring.
 * The kernels for one token round differently from those for several, and quantised weights make whole hundredths of that, so no piece ever
 * has one token: a step of generation evaluates the last token again together with the new one.
 */
import { Distribution } from './distribution.ts';
import type { DistributionRequest, LlamaSequence } from './llama-library.ts';

/** Tokens between two looks at the signal. */
export const pieceLength = 64;

/** Whole distributions are large: fewer at a time. */
const wantedPieceLength = 8;

const wanted: DistributionRequest = {
  generateNext: { probabilities: true, options: { temperature: 0 } },
};

export class Evaluator {
  readonly #sequence: LlamaSequence;

  constructor(sequence: LlamaSequence) {
    this.#sequence = sequence;
  }

  /** The distribution behind all of `ids`. */
  async next(ids: readonly number[], signal: AbortSignal): Promise<Distribution> {
    let last: Distribution | null = null;
    for await (const distribution of this.distributions(ids, ids.length - 1, signal))
      last = distribution;
    if (last === null) throw new Error('no distribution behind an empty text');
    return last;
  }

  /** The distributions behind `ids[from]` and every later one, in order. */
  async *distributions(
    ids: readonly number[],
    from: number,
    signal: AbortSignal,
  ): AsyncGenerator<Distribution, void, undefined> {
    let at = await this.#keep(ids, Math.min(from, ids.length - 2));
    while (at < ids.length) {
      signal.throwIfAborted();
      const end = pieceEnd(at, from, ids.length);
      const piece = ids.slice(at, end);
      const first = at;
      const answers = await this.#sequence.controlledEvaluate(
        piece.map((id, index) => (first + index >= from ? ([id, wanted] as const) : id)),
      );
      for (const answer of answers.slice(Math.max(0, from - first))) {
        const probabilities = answer?.next.probabilities;
        if (probabilities === undefined) throw new Error('the model gave no distribution');
        yield new Distribution(probabilities);
      }
      at = end;
    }
  }

  /** Forgets what does not begin `ids`, or lies behind `limit`, and says how much is left. */
  async #keep(ids: readonly number[], limit: number): Promise<number> {
    const { firstDifferentIndex } = this.#sequence.compareContextTokens(ids);
    const kept = Math.max(0, Math.min(firstDifferentIndex, limit));
    const held = this.#sequence.nextTokenIndex;
    if (held > kept) await this.#sequence.eraseContextTokenRanges([{ start: kept, end: held }]);
    return Math.min(kept, this.#sequence.nextTokenIndex);
  }
}

/** Where the piece that begins at `at` ends: it is short where distributions are wanted, and neither it nor what is left has one token. */
function pieceEnd(at: number, from: number, length: number): number {
  const limit =
    at < from ? Math.min(at + pieceLength, Math.max(from, at + 2)) : at + wantedPieceLength;
  return length - limit <= 1 ? length : limit;
}
