/**
 * What we use of `@huggingface/tokenizers`. Its own declarations import each other without file extensions, which TypeScript does not
 * resolve for ESM on Node, so the few members are declared here.
 */
import * as library from '@huggingface/tokenizers';

export interface BpeTokenizer {
  readonly normalizer: { normalize(text: string): string } | null;
  /** Splits a text and spells each piece in the byte alphabet. */
  readonly pre_tokenizer: { pre_tokenize(text: string): string[] };
  /** Merges within each piece. */
  readonly model: { encode(pieces: readonly string[]): string[] };
  encode(
    text: string,
    options: { readonly add_special_tokens: boolean },
  ): { readonly ids: number[] };
}

type TokenizerConstructor = new (
  tokenizer: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>>,
) => BpeTokenizer;

/** Throws for documents that it cannot use. */
export function openTokenizer(document: Readonly<Record<string, unknown>>): BpeTokenizer {
  const { Tokenizer } = library as unknown as { readonly Tokenizer: TokenizerConstructor };
  return new Tokenizer(document, {});
}
