/**
 * A policy of a few hundred parameters with real gradients: for each exercise and each position of a reply it has one logit per action, and the softmax of these is the
 * distribution of the next token. Actions are the letters A to H and the end of the reply. Everything is exact, in 64-bit floats.
 */

/** Ids of the actions, in the order of their logits: eight letters, then the end. */
export interface PolicyShape {
  readonly exercises: number;
  /** Positions with parameters of their own; later ones share those of the last. */
  readonly positions: number;
  readonly actions: number;
}

export interface PolicyState {
  readonly exercise: number;
  readonly position: number;
}

export class LetterPolicy {
  readonly shape: PolicyShape;
  readonly #logits: Float64Array;

  constructor(shape: PolicyShape, logits?: Float64Array) {
    this.shape = shape;
    const size = shape.exercises * shape.positions * shape.actions;
    this.#logits = logits?.slice() ?? new Float64Array(size);
  }

  copy(): LetterPolicy {
    return new LetterPolicy(this.shape, this.#logits);
  }

  /** A gradient of zeros, in the layout of the parameters. */
  zeros(): Float64Array {
    return new Float64Array(this.#logits.length);
  }

  /** One log-probability per action. */
  logprobs(state: PolicyState): readonly number[] {
    const from = this.#offset(state);
    const logits = [...this.#logits.subarray(from, from + this.shape.actions)];
    const highest = Math.max(...logits);
    const sum = logits.reduce((total, logit) => total + Math.exp(logit - highest), 0);
    const norm = highest + Math.log(sum);
    return logits.map((logit) => logit - norm);
  }

  /** Adds `scale` times the gradient of the action's log-probability. */
  addGradient(
    gradient: Float64Array,
    { state, action, scale }: { state: PolicyState; action: number; scale: number },
  ): void {
    const from = this.#offset(state);
    for (const [index, logprob] of this.logprobs(state).entries()) {
      const step = (index === action ? 1 : 0) - Math.exp(logprob);
      gradient[from + index] = (gradient[from + index] ?? 0) + scale * step;
    }
  }

  /** One step up the gradient. */
  ascend(gradient: Float64Array, rate: number): void {
    for (const [index, slope] of gradient.entries())
      this.#logits[index] = (this.#logits[index] ?? 0) + rate * slope;
  }

  #offset({ exercise, position }: PolicyState): number {
    const { positions, actions } = this.shape;
    return (exercise * positions + Math.min(position, positions - 1)) * actions;
  }
}
