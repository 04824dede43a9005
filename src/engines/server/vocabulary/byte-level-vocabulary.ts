/**
 * A byte-level BPE vocabulary. Every text has ids and every id has bytes, so that ids in any order decode, and text goes there and back
 * unchanged wherever the vocabulary has no normaliser (ours has none; Qwen's composes characters first, as NFC). Lone surrogates
 * are no text: they become U+FFFD.
 */
import { RolloutError } from '../../../core/errors.ts';
import type { Vocabulary } from '../token-model.ts';
import type { BpeTokenizer } from './bpe-library.ts';
import { bytesOfToken } from './byte-alphabet.ts';
import type { AddedToken } from './tokenizer-file.ts';
import { WeightedCache } from './weighted-cache.ts';

export interface VocabularyParts {
  readonly tokenizer: BpeTokenizer;
  readonly ordinary: ReadonlyMap<string, number>;
  readonly added: readonly AddedToken[];
  readonly endId: number;
}

/** Characters of text whose ids are remembered: prompts repeat their history at every turn. */
const cacheBudget = 16 * 1024 * 1024;

/** What an entry costs beyond its text, in characters. */
const entryWeight = 64;

export class ByteLevelVocabulary implements Vocabulary {
  readonly size: number;
  readonly endId: number;
  readonly #tokenizer: BpeTokenizer;
  readonly #ordinary: ReadonlyMap<string, number>;
  readonly #bytes: (Uint8Array | undefined)[];
  readonly #special: ReadonlySet<number>;
  readonly #ordinaryIds = newCache();
  readonly #idsWithSpecial = newCache();

  constructor(parts: VocabularyParts) {
    this.#tokenizer = parts.tokenizer;
    this.#ordinary = parts.ordinary;
    this.endId = parts.endId;
    this.#bytes = tableOfBytes(parts);
    this.size = this.#bytes.length;
    this.#special = new Set(parts.added.flatMap(({ id, isSpecial }) => (isSpecial ? [id] : [])));
  }

  encode(text: string, options: { readonly parsesSpecial: boolean }): number[] {
    const { parsesSpecial } = options;
    const wellFormed = text.toWellFormed();
    const cache = parsesSpecial ? this.#idsWithSpecial : this.#ordinaryIds;
    const known = cache.get(wellFormed);
    if (known !== undefined) return known.slice();
    const ids = parsesSpecial
      ? this.#tokenizer.encode(wellFormed, { add_special_tokens: false }).ids
      : this.#encodeOrdinary(wellFormed);
    cache.add(wellFormed, ids.slice());
    return ids;
  }

  bytesOf(id: number): Uint8Array {
    const bytes = this.#bytes[id];
    if (bytes !== undefined) return bytes;
    throw new RolloutError('ENGINE_REQUEST_INVALID', `the vocabulary has no token ${id}`, {
      phase: 'model-call',
    });
  }

  isSpecial(id: number): boolean {
    return this.#special.has(id);
  }

  isEnd(id: number): boolean {
    return id === this.endId;
  }

  decode(ids: readonly number[], options: { readonly skipsSpecial: boolean }): string {
    const kept = options.skipsSpecial ? ids.filter((id) => !this.#special.has(id)) : ids;
    let length = 0;
    for (const id of kept) length += this.bytesOf(id).length;
    const bytes = new Uint8Array(length);
    let at = 0;
    // Tokens are a few bytes long: a loop over bytes is faster than a copy call for each.
    for (const id of kept) for (const byte of this.bytesOf(id)) bytes[at++] = byte;
    return utf8.decode(bytes);
  }

  /** The library's stages without its search for added tokens, so that no text whatever yields one. */
  #encodeOrdinary(text: string): number[] {
    const { normalizer, pre_tokenizer: splitter, model } = this.#tokenizer;
    const normal = normalizer === null ? text : normalizer.normalize(text);
    if (normal === '') return [];
    const ids: number[] = [];
    for (const token of model.encode(splitter.pre_tokenize(normal))) {
      const id = this.#ordinary.get(token);
      if (id !== undefined) ids.push(id);
      else for (const character of token) ids.push(this.#idOfByte(character));
    }
    return ids;
  }

  #idOfByte(character: string): number {
    const id = this.#ordinary.get(character);
    if (id === undefined) throw new Error(`no token for the byte character ${character}`);
    return id;
  }
}

const newCache = (): WeightedCache<readonly number[]> =>
  new WeightedCache(cacheBudget, (text) => text.length + entryWeight);

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

function tableOfBytes(parts: VocabularyParts): (Uint8Array | undefined)[] {
  const table: (Uint8Array | undefined)[] = [];
  for (const [token, id] of parts.ordinary) {
    const bytes = bytesOfToken(token);
    if (bytes !== null) table[id] = bytes;
  }
  for (const { id, content } of parts.added) table[id] = Buffer.from(content, 'utf8');
  return table;
}
