/**
 * Log-probabilities that a float32 engine could print, from the seed and everything before the token: sampling and scoring agree. One in sixteen
 * is a rounding trap: negative zero, next to zero, very unlikely, or a number whose decimal form is long.
 */
import { mix, seededRandom } from '../server/seeded.ts';

export function mockLogprob(seed: number, prefix: number, id: number): number {
  const random = seededRandom(seed, 23, prefix, id);
  switch (mix(prefix, id) % 64) {
    case 0:
      return -0;
    case 1:
      return Math.fround(-1e-7 * (1 + random()));
    case 2:
      return Math.fround(-18 - 6 * random());
    case 3:
      return Math.fround(-1.1920928955078125e-7);
    default:
      return Math.fround(-4 * random() ** 3);
  }
}

/** One for all: replies are long. */
const none: readonly never[] = [];

/** The token and `count` − 1 others, likeliest first; all together never more than certain. */
export function mockTop(
  token: { readonly id: number; readonly logprob: number },
  at: { readonly prefix: number; readonly count: number; readonly vocabularySize: number },
): readonly { readonly id: number; readonly logprob: number }[] {
  if (at.count === 0) return none;
  const top = [{ id: token.id, logprob: token.logprob }];
  const taken = new Set([token.id]);
  let rest = -Math.expm1(token.logprob);
  for (let index = 0; top.length < Math.min(at.count, at.vocabularySize); index += 1) {
    const id = mix(at.prefix, index) % at.vocabularySize;
    if (taken.has(id)) continue;
    taken.add(id);
    rest /= 2;
    // As vLLM prints what has no chance at all.
    top.push({ id, logprob: rest > 0 ? Math.fround(Math.log(rest)) : -9999 });
  }
  return top.sort((a, b) => b.logprob - a.logprob);
}
