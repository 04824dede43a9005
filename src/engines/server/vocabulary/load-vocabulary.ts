import { fileURLToPath } from 'node:url';
import { messageOf } from '../../../core/errors.ts';
import type { Vocabulary } from '../token-model.ts';
import { type BpeTokenizer, openTokenizer } from './bpe-library.ts';
import { ByteLevelVocabulary } from './byte-level-vocabulary.ts';
import { readTokenizerFile, refusal, type TokenizerFile } from './tokenizer-file.ts';

const bundledFile = fileURLToPath(
  new URL('../../../../assets/vocabulary/tokenizer.json', import.meta.url),
);

/** Names of the token that ends an assistant's turn, in the order in which they are believed. */
const endNames = ['<|im_end|>', '<|eot_id|>', '<|eom_id|>', '<|endoftext|>', '<|end_of_text|>'];

/**
 * Loads a `tokenizer.json` of byte-level BPE, or the one in a folder; null = the vocabulary that is shipped with Slipway.
 * CONFIG_INVALID for what cannot be read or is of another kind.
 */
export async function loadVocabulary(path: string | null): Promise<Vocabulary> {
  const name = path ?? bundledFile;
  const file = await readTokenizerFile(name);
  const endId = endIdOf(file);
  if (endId === null) throw refusal(name, 'has no token that ends a turn');
  const { ordinary, added } = file;
  return new ByteLevelVocabulary({ tokenizer: open(name, file), ordinary, added, endId });
}

function open(name: string, file: TokenizerFile): BpeTokenizer {
  try {
    return openTokenizer(file.document);
  } catch (error) {
    throw refusal(name, `cannot be used: ${messageOf(error)}`, error);
  }
}

/** ChatML's end wins over the file's own: chats are rendered as ChatML. */
function endIdOf(file: TokenizerFile): number | null {
  const ids = new Map(file.added.map(({ content, id }) => [content, id]));
  const [chatMl, ...others] = endNames;
  for (const name of [chatMl, file.endToken, ...others]) {
    const id = ids.get(name ?? '');
    if (id !== undefined) return id;
  }
  return null;
}
