import { seededRandom } from '../../core/seeded-random.ts';

/** The numbers below `length` in an order that follows from `seed` alone, on every machine. */
export function shuffledOrder(length: number, seed: number): readonly number[] {
  const order = Array.from({ length }, (_, at) => at);
  const random = seededRandom(seed);
  for (let at = length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    const moved = order[at] ?? 0;
    order[at] = order[other] ?? 0;
    order[other] = moved;
  }
  return order;
}
