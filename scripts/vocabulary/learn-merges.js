/**
 * Byte-pair encoding's training: the most frequent pair of neighbours becomes a token, again and again. Ties go to the pair that sorts first, so that
 * the order of files does not matter. Pairs know the words that they occur in, hence a merge touches only these.
 */
import { byteCharacters, pieces } from './tokenizer-document.js';

/**
 * @typedef {{ symbols: string[], count: number }} Word
 * @typedef {{ left: string, right: string, count: number, words: Set<Word> }} Pair
 */

/**
 * @param {readonly string[]} texts
 * @param {number} limit
 * @returns {[string, string][]} Fewer than `limit` when no pair occurs twice any more.
 */
export function learnMerges(texts, limit) {
  /** @type {Map<string, Pair>} */
  const pairs = new Map();
  for (const word of wordsOf(texts)) countPairs(pairs, word, 1);

  /** @type {[string, string][]} */
  const merges = [];
  /** A pair may come up again, spelt by other merges; its first rank holds. */
  const known = new Set();
  while (merges.length < limit) {
    const best = bestPair(pairs);
    if (best === null || best.count < 2) break;
    const { left, right } = best;
    const key = `${left} ${right}`;
    if (!known.has(key)) merges.push([left, right]);
    known.add(key);
    for (const word of [...best.words]) {
      countPairs(pairs, word, -1);
      word.symbols = merged(word.symbols, left, right);
      countPairs(pairs, word, 1);
    }
  }
  return merges;
}

/** @param {readonly string[]} texts */
function wordsOf(texts) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const text of texts)
    for (const [piece] of text.matchAll(pieces)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  return [...counts].map(([piece, count]) => ({
    count,
    symbols: Array.from(Buffer.from(piece, 'utf8'), (byte) => byteCharacters[byte] ?? ''),
  }));
}

/**
 * @param {Map<string, Pair>} pairs
 * @param {Word} word
 * @param {1 | -1} sign
 */
function countPairs(pairs, word, sign) {
  for (let index = 1; index < word.symbols.length; index++) {
    const left = word.symbols[index - 1] ?? '';
    const right = word.symbols[index] ?? '';
    const key = `${left} ${right}`;
    const pair = pairs.get(key) ?? { left, right, count: 0, words: new Set() };
    pair.count += sign * word.count;
    if (sign === 1) pair.words.add(word);
    else pair.words.delete(word);
    if (pair.count === 0) pairs.delete(key);
    else pairs.set(key, pair);
  }
}

/** @param {Map<string, Pair>} pairs */
function bestPair(pairs) {
  /** @type {Pair | null} */
  let best = null;
  for (const pair of pairs.values()) if (best === null || isBetter(pair, best)) best = pair;
  return best;
}

/**
 * @param {Pair} a
 * @param {Pair} b
 */
function isBetter(a, b) {
  if (a.count !== b.count) return a.count > b.count;
  return a.left !== b.left ? a.left < b.left : a.right < b.right;
}

/**
 * @param {readonly string[]} symbols
 * @param {string} left
 * @param {string} right
 */
function merged(symbols, left, right) {
  const result = [];
  for (let index = 0; index < symbols.length; index++) {
    if (symbols[index] === left && symbols[index + 1] === right) {
      result.push(left + right);
      index++;
    } else result.push(symbols[index] ?? '');
  }
  return result;
}
