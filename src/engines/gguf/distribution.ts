/**
 * What is reported and what is drawn. Reported is always the model's own log-probability: the log softmax of the logits over the whole
 * vocabulary, at temperature 1, before penalties and cuts. Drawn is from that distribution after penalties, temperature, top-k, top-p and
 * min-p, in this order; without any of them (temperature 1) both are the same distribution.
 */
import type { SamplingParams } from '../engine.ts';

/** The library gives probabilities as float32. What is less likely than its smallest one is 0 there and is reported as this bound. */
const smallestProbability = 2 ** -149;

export interface RankedToken {
  readonly id: number;
  readonly logprob: number;
}

export class Distribution {
  readonly #probabilities: ReadonlyMap<number, number>;
  /** float32 sums are a little off 1; ours are doubles. */
  readonly #logTotal: number;

  /** Best first. */
  constructor(probabilities: ReadonlyMap<number, number>) {
    this.#probabilities = probabilities;
    let total = 0;
    for (const probability of probabilities.values()) total += probability;
    this.#logTotal = Math.log(total);
  }

  get size(): number {
    return this.#probabilities.size;
  }

  logprobOf(id: number): number {
    return this.#log(this.#probabilities.get(id) ?? 0);
  }

  /** Best first. */
  top(count: number): RankedToken[] {
    const ranked: RankedToken[] = [];
    if (count < 1) return ranked;
    for (const [id, probability] of this.#probabilities) {
      ranked.push({ id, logprob: this.#log(probability) });
      if (ranked.length === count) break;
    }
    return ranked;
  }

  #log(probability: number): number {
    return Math.log(Math.max(probability, smallestProbability)) - this.#logTotal;
  }
}

export interface Drawing {
  readonly sampling: SamplingParams;
  /** Ids sampled so far in this answer; penalties count them. */
  readonly sampled: readonly number[];
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

/** Draws one id. */
export function draw(distribution: Distribution, drawing: Drawing): number {
  const { temperature = 1, topK, topP = 1, minP = 0 } = drawing.sampling;
  const ranked = penalised(distribution, drawing);
  const [best] = ranked;
  if (best === undefined) throw new Error('a distribution over nothing');
  if (temperature === 0) return best.id;

  // -1 and 0 are how engines spell "all of them".
  const kept = topK === undefined || topK < 1 ? ranked : ranked.slice(0, topK);
  const weights = kept.map(({ logprob }) => Math.exp((logprob - best.logprob) / temperature));
  const count = Math.min(countOfTopP(weights, topP), countOfMinP(weights, minP));
  const total = sum(weights, count);
  let left = drawing.random() * total;
  for (let index = 0; index < count; index++) {
    left -= weights[index] ?? 0;
    if (left < 0) return kept[index]?.id ?? best.id;
  }
  return best.id;
}

/** Best first, after penalties. */
function penalised(distribution: Distribution, { sampling, sampled }: Drawing): RankedToken[] {
  const { frequencyPenalty = 0, presencePenalty = 0 } = sampling;
  const ranked = distribution.top(distribution.size);
  if (frequencyPenalty === 0 && presencePenalty === 0) return ranked;
  const counts = new Map<number, number>();
  for (const id of sampled) counts.set(id, (counts.get(id) ?? 0) + 1);
  return ranked
    .map(({ id, logprob }) => {
      const count = counts.get(id) ?? 0;
      const penalty = count === 0 ? 0 : count * frequencyPenalty + presencePenalty;
      return { id, logprob: logprob - penalty };
    })
    .sort((a, b) => b.logprob - a.logprob);
}

/** The fewest of the best that hold `topP` of the weight together. */
function countOfTopP(weights: readonly number[], topP: number): number {
  if (topP >= 1) return weights.length;
  const wanted = topP * sum(weights, weights.length);
  let held = 0;
  let count = 0;
  for (const weight of weights) {
    count++;
    held += weight;
    if (held >= wanted) break;
  }
  return count;
}

/** Those at least `minP` times as likely as the best, whose weight is 1. */
function countOfMinP(weights: readonly number[], minP: number): number {
  const first = weights.findIndex((weight) => weight < minP);
  return first === -1 ? weights.length : Math.max(first, 1);
}

function sum(weights: readonly number[], count: number): number {
  let total = 0;
  for (let index = 0; index < count; index++) total += weights[index] ?? 0;
  return total;
}
