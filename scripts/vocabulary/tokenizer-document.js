/** A `tokenizer.json` around learned merges. */

/**
 * Words with the space or the sign before them, up to three digits, runs of signs with the newlines behind them, newlines with the spaces before them, spaces
 * up to the last before a word. Every character is in some piece.
 */
export const pieces =
  /[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;

/** Names of the tokens that no text yields; of these only the first three are left out of text that is decoded for readers. */
const controlTokens = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<think>',
  '</think>',
  '<tool_call>',
  '</tool_call>',
];

/** The character of each byte: see `src/engines/server/vocabulary/byte-alphabet.ts`, which a test compares with the file that comes out. */
export const byteCharacters = (() => {
  let substitute = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCharCode(isPrintable ? byte : substitute++);
  });
})();

/** @param {readonly (readonly [string, string])[]} merges */
export function tokenizerDocument(merges) {
  // Different pairs may join to the same token.
  const tokens = [...new Set([...byteCharacters, ...merges.map((pair) => pair.join(''))])];
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: controlTokens.map((content, index) => ({
      id: tokens.length + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: index < 3,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        {
          type: 'Split',
          pattern: { Regex: pieces.source },
          behavior: 'Isolated',
          invert: false,
        },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: merges.map((pair) => pair.join(' ')),
    },
  };
}
