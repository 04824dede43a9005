import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Evaluator, pieceLength } from '../../../src/engines/gguf/evaluator.ts';
import type {
  DistributionRequest,
  LlamaSequence,
} from '../../../src/engines/gguf/llama-library.ts';

const vocabularySize = 10;

/** Holds ids as the library's sequence does. The likeliest id behind a text is its number of tokens plus its last id, so a misplaced text is seen. */
class FakeSequence implements LlamaSequence {
  held: number[] = [];
  readonly pieces: number[] = [];

  get nextTokenIndex(): number {
    return this.held.length;
  }

  compareContextTokens(ids: readonly number[]): { readonly firstDifferentIndex: number } {
    const index = this.held.findIndex((id, place) => ids[place] !== id);
    return { firstDifferentIndex: index === -1 ? Math.min(this.held.length, ids.length) : index };
  }

  async eraseContextTokenRanges(
    ranges: readonly { readonly start: number; readonly end: number }[],
  ): Promise<void> {
    for (const { start, end } of ranges) this.held.splice(start, end - start);
  }

  async controlledEvaluate(
    input: readonly (number | readonly [number, DistributionRequest])[],
  ): Promise<({ next: { probabilities: ReadonlyMap<number, number> } } | undefined)[]> {
    this.pieces.push(input.length);
    return input.map((item) => {
      const id = typeof item === 'number' ? item : item[0];
      this.held.push(id);
      if (typeof item === 'number') return undefined;
      const best = (this.held.length + id) % vocabularySize;
      return { next: { probabilities: new Map([[best, 1]]) } };
    });
  }
}

const never = new AbortController().signal;
const textOf = (length: number): number[] => Array.from({ length }, (_, index) => (index * 7) % 10);
const bestBehind = (ids: readonly number[]): number => (ids.length + ids.at(-1)!) % vocabularySize;

const lengths = [2, 3, 8, 9, 10, 63, 64, 65, 66, 127, 128, 129, 130, 200];

suite('evaluating a text in pieces', () => {
  test('no piece has one token, and every answer stands behind its own text', async () => {
    for (const length of lengths)
      for (const from of [0, 1, length >> 1, length - 2, length - 1]) {
        const sequence = new FakeSequence();
        const ids = textOf(length);
        const best: number[] = [];
        for await (const known of new Evaluator(sequence).distributions(ids, from, never))
          best.push(known.top(1)[0]!.id);
        assert.deepEqual(
          best,
          ids.slice(from).map((_, index) => bestBehind(ids.slice(0, from + index + 1))),
        );
        assert.ok(
          Math.min(...sequence.pieces) >= 2,
          `${length} from ${from}: ${sequence.pieces.join()}`,
        );
        assert.ok(Math.max(...sequence.pieces) <= pieceLength + 1);
        assert.deepEqual(sequence.held, ids);
      }
  });

  test('a step of generation evaluates two tokens', async () => {
    const sequence = new FakeSequence();
    const evaluator = new Evaluator(sequence);
    const ids = textOf(40);
    await evaluator.next(ids, never);
    sequence.pieces.length = 0;
    for (let step = 0; step < 5; step++) {
      ids.push(step);
      assert.equal((await evaluator.next(ids, never)).top(1)[0]!.id, bestBehind(ids));
    }
    assert.deepEqual(sequence.pieces, [2, 2, 2, 2, 2]);
  });

  test('only what another text does not share is evaluated', async () => {
    const sequence = new FakeSequence();
    const evaluator = new Evaluator(sequence);
    await evaluator.next(textOf(100), never);
    sequence.pieces.length = 0;
    const other = [...textOf(90), 1, 1, 1, 1];
    assert.equal((await evaluator.next(other, never)).top(1)[0]!.id, bestBehind(other));
    assert.deepEqual(sequence.pieces, [4]);
    sequence.pieces.length = 0;
    await evaluator.next(textOf(50), never);
    assert.deepEqual(sequence.pieces, [2]);
    assert.deepEqual(sequence.held, textOf(50));
  });

  test('a single token is a text too', async () => {
    const sequence = new FakeSequence();
    assert.equal((await new Evaluator(sequence).next([4], never)).top(1)[0]!.id, 5);
  });

  test('the signal is looked at between pieces', async () => {
    const sequence = new FakeSequence();
    const controller = new AbortController();
    const reason = new Error('enough');
    const evaluator = new Evaluator(sequence);
    await assert.rejects(async () => {
      for await (const known of evaluator.distributions(textOf(200), 0, controller.signal))
        if (known.size > 0) controller.abort(reason);
    }, reason);
    assert.equal(sequence.pieces.length, 1);
  });
});
