/** Words and sentences, counted as the benchmarks of instructions count them. */

const asciiPunctuation = '!-/:-@[-`{-~';
const punctuation = new RegExp(`[${asciiPunctuation}]`, 'g');
const edges = new RegExp(`^[${asciiPunctuation} ]+|[${asciiPunctuation} ]+$`, 'g');

export const withoutPunctuation = (text: string): string => text.replaceAll(punctuation, '');

/** Without punctuation and spaces at both ends. */
export const bare = (text: string): string => text.replaceAll(edges, '');

/** A pattern that means nothing but the text. */
export const literal = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}/-]/g, '\\$&');

/** What white space separates. */
export const pieces = (text: string): readonly string[] =>
  text.split(/\s+/).filter((piece) => piece !== '');

export const countWords = (text: string): number => text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;

export const countOf = (text: string, part: string): number => text.split(part).length - 1;

// Dots that end no sentence are set aside under this sign, ends of sentences under that one.
const dot = '\u{E000}';
const stop = '\u{E001}';
const starters =
  '(?:Mr|Mrs|Ms|Dr|Prof|Capt|Cpt|Lt|He\\s|She\\s|It\\s|They\\s|Their\\s|Our\\s|We\\s|But\\s|However\\s|That\\s|This\\s|Wherever)';

type Rewriting = readonly [pattern: RegExp, into: string];
const rewritings: readonly Rewriting[] = [
  [/(Mr|St|Mrs|Ms|Dr)\./g, `$1${dot}`],
  [/\.(com|net|org|io|gov|edu|me)/g, `${dot}$1`],
  [/([0-9])\.([0-9])/g, `$1${dot}$2`],
];
const laterRewritings: readonly Rewriting[] = [
  [/Ph\.D\./g, `Ph${dot}D${dot}`],
  [/\s([A-Za-z])\. /g, ` $1${dot} `],
  [new RegExp(`([A-Z]\\.[A-Z]\\.(?:[A-Z]\\.)?) (?=${starters})`, 'g'), `$1${stop} `],
  [/([A-Za-z])\.([A-Za-z])\.([A-Za-z])\./g, `$1${dot}$2${dot}$3${dot}`],
  [/([A-Za-z])\.([A-Za-z])\./g, `$1${dot}$2${dot}`],
  [new RegExp(` (Inc|Ltd|Jr|Sr|Co)\\. (?=${starters})`, 'g'), ` $1${stop} `],
  [/ (Inc|Ltd|Jr|Sr|Co)\./g, ` $1${dot}`],
  [/ ([A-Za-z])\./g, ` $1${dot}`],
  [/\.”/g, '”.'],
  [/\."/g, '".'],
  [/!"/g, '"!'],
  [/\?"/g, '"?'],
  [/([.?!])/g, `$1${stop}`],
];

/** By dots, question marks and exclamation marks, but for those of abbreviations, numbers and addresses. */
export function sentencesOf(text: string): readonly string[] {
  const rewritten = rewritings
    .reduce(rewrite, ` ${text.replaceAll('\n', ' ')}  `)
    .replaceAll(/\.{2,}/g, (dots) => dot.repeat(dots.length) + stop);
  const sentences = laterRewritings
    .reduce(rewrite, rewritten)
    .replaceAll(dot, '.')
    .split(stop)
    .map((sentence) => sentence.trim());
  return sentences.at(-1) === '' ? sentences.slice(0, -1) : sentences;
}

const rewrite = (text: string, [pattern, into]: Rewriting): string =>
  text.replaceAll(pattern, into);
