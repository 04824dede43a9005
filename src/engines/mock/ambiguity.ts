/**
 * Other ids for the same bytes. A model may sample pieces where the tokeniser would have merged them, or spell a special token with ordinary ones;
 * whoever decodes such a reply and encodes it again gets other ids than were sampled.
 */
import type { Vocabulary } from '../server/token-model.ts';

export class Ambiguity {
  readonly #vocabulary: Vocabulary;
  #idsByBytes: ReadonlyMap<string, number> | null = null;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Splits about `share` of the tokens, at least one; the same ids when none can be split. The first and last are as likely as any. */
  respell(ids: readonly number[], share: number, random: () => number): readonly number[] {
    const chosen = new Set(ids.flatMap((_, index) => (random() < share ? [index] : [])));
    const respelt = ids.map((id, index) => (chosen.has(index) ? this.#split(id, random) : [id]));
    if (respelt.some((pieces) => pieces.length > 1)) return respelt.flat();
    const start = Math.floor(random() * ids.length);
    for (let step = 0; step < ids.length; step += 1) {
      const index = (start + step) % ids.length;
      const pieces = this.#split(ids[index] ?? 0, random);
      if (pieces.length > 1) return [...ids.slice(0, index), ...pieces, ...ids.slice(index + 1)];
    }
    return ids;
  }

  #split(id: number, random: () => number): readonly number[] {
    const vocabulary = this.#vocabulary;
    const bytes = vocabulary.bytesOf(id);
    if (vocabulary.isSpecial(id))
      return vocabulary.encode(Buffer.from(bytes).toString('utf8'), { parsesSpecial: false });
    if (bytes.length < 2) return [id];
    if (random() < 0.25) return this.#byteIds(bytes) ?? [id];
    const cut = 1 + Math.floor(random() * (bytes.length - 1));
    const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)].map((piece) => this.#idOf(piece));
    const whole = pieces.filter((piece) => piece !== null);
    return whole.length === pieces.length ? whole : (this.#byteIds(bytes) ?? [id]);
  }

  #byteIds(bytes: Uint8Array): readonly number[] | null {
    const ids = Array.from(bytes, (byte) => this.#idOf(Uint8Array.of(byte)));
    const known = ids.filter((id) => id !== null);
    return known.length === ids.length ? known : null;
  }

  #idOf(bytes: Uint8Array): number | null {
    this.#idsByBytes ??= this.#index();
    return this.#idsByBytes.get(Buffer.from(bytes).toString('latin1')) ?? null;
  }

  #index(): ReadonlyMap<string, number> {
    const vocabulary = this.#vocabulary;
    const index = new Map<string, number>();
    for (let id = 0; id < vocabulary.size; id += 1) {
      if (vocabulary.isSpecial(id)) continue;
      const bytes = vocabulary.bytesOf(id);
      if (bytes.length > 0) index.set(Buffer.from(bytes).toString('latin1'), id);
    }
    return index;
  }
}
