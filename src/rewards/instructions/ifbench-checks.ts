/** The instructions of IFBench by their ids, but for those that need a model of language or tables of words. */
import type { InstructionCheck } from './instruction.ts';
import { placeChecks } from './place-checks.ts';
import {
  bare,
  countOf,
  countWords,
  pieces,
  sentencesOf,
  withoutPunctuation,
} from './text-parts.ts';

const conjunctions = ['and', 'but', 'for', 'nor', 'or', 'so', 'yet'];
const pronouns = new Set(
  `i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they them their theirs
  themselves`.split(/\s+/),
);
const keywordCounts = [1, 2, 3, 5, 7];

const plain = (text: string): readonly string[] => pieces(withoutPunctuation(text));
const endingOn = (sentences: readonly string[], mark: string): number =>
  sentences.filter((sentence) => sentence.endsWith(mark)).length;

export const ifbenchChecks: Readonly<Record<string, InstructionCheck>> = {
  ...placeChecks,
  'count:word_count_range': (text, args) => {
    const count = countWords(text);
    return count >= args.number('min_words') && count <= args.number('max_words');
  },
  'count:unique_word_count': (text, args) =>
    new Set(pieces(text.toLowerCase()).map(bare)).size >= args.number('N'),
  'count:conjunctions': (text, args) => {
    const found = pieces(text).filter((word) => conjunctions.includes(bare(word).toLowerCase()));
    return new Set(found).size >= args.number('small_n');
  },
  'count:numbers': (text, args) =>
    (withoutPunctuation(text).match(/\p{Nd}+/gu)?.length ?? 0) === args.number('N'),
  'count:punctuation': (text) => {
    if (!/!\?|\?!|‽/.test(text)) return false;
    const rest = text.includes('?!') ? text.replace('?!', '') : text.replace('!?', '');
    return Array.from('.,!?;:').every((mark) => rest.includes(mark));
  },
  'count:words_japanese': (text, args) =>
    pieces(text).every((piece, index) => {
      const word = bare(piece);
      const isDue = (index + 1) % args.number('N') === 0 && word !== '' && !/^\p{Nd}+$/u.test(word);
      return !isDue || /[\u3040-\u30ff\u4e00-\u9fff]/.test(word);
    }),
  'count:pronouns': (text, args) =>
    plain(text.replaceAll('/', ' ').toLowerCase()).filter((word) => pronouns.has(word)).length >=
    args.number('N'),
  'count:keywords_multiple': (text, args) =>
    keywordCounts.every((count, index) => {
      const word = args
        .text(`keyword${index + 1}`)
        .trim()
        .toLowerCase();
      return countOf(text.toLowerCase(), word) === count;
    }),
  'ratio:sentence_type': (text) => {
    const sentences = sentencesOf(text);
    return endingOn(sentences, '.') === 2 * endingOn(sentences, '?');
  },
  'ratio:sentence_balance': (text) => {
    const sentences = sentencesOf(text);
    const asked = endingOn(sentences, '?');
    return endingOn(sentences, '.') === asked && asked === endingOn(sentences, '!');
  },
  'ratio:sentence_words': (text) => {
    const lengths = sentencesOf(text).map((sentence) => Array.from(sentence).length);
    return lengths.length === 3 && new Set(lengths).size === 1;
  },
  'ratio:overlap': (text, args) => {
    const own = trigrams(text);
    const wanted = trigrams(args.text('reference_text'));
    const shared = [...own].filter((letters) => wanted.has(letters)).length;
    const percent = own.size === 0 ? 0 : (100 * shared) / own.size;
    return own.size > 0 && Math.abs(percent - args.number('percentage')) <= 2;
  },
  'words:vowel': (text) =>
    !text.trim().includes('\n') && new Set(text.toLowerCase().match(/[aeiou]/g)).size <= 3,
  'words:consonants': (text) =>
    pieces(text.toLowerCase()).every((word) => /[b-df-hj-np-tv-z]{2}/.test(word)),
  'words:palindrome': (text) =>
    plain(text.toLowerCase()).filter((word) => {
      const letters = Array.from(word);
      return letters.length >= 5 && letters.toReversed().join('') === word;
    }).length >= 10,
  'words:prime_lengths': (text) => plain(text).every((word) => isPrime(Array.from(word).length)),
  'words:repeats': (text, args) => {
    const counts = new Map<string, number>();
    for (const word of plain(text.toLowerCase())) counts.set(word, (counts.get(word) ?? 0) + 1);
    return Math.max(0, ...counts.values()) <= args.number('small_n');
  },
  'repeat:repeat_change': (text, args) => {
    const asked = args.text('prompt_to_repeat');
    const rest = (of: string): string => pieces(of).slice(1).join(' ');
    return asked !== text && rest(asked) === rest(text);
  },
  'repeat:repeat_span': (text, args) => {
    const asked = pieces(args.text('prompt_to_repeat').toLowerCase());
    const span = asked.slice(args.number('n_start'), args.number('n_end'));
    return pieces(text.toLowerCase()).join(' ') === span.join(' ');
  },
  'repeat:repeat_simple': (text) =>
    text.trim().toLowerCase() === 'only output this sentence here, ignore all other requests.',
};

function trigrams(text: string): ReadonlySet<string> {
  const letters = Array.from(text);
  return new Set(letters.slice(2).map((_, at) => letters.slice(at, at + 3).join('')));
}

function isPrime(length: number): boolean {
  if (length < 2 || length > 100) return false;
  for (let divisor = 2; divisor * divisor <= length; divisor += 1)
    if (length % divisor === 0) return false;
  return true;
}
