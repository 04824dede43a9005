/** Instructions of IFBench about where words stand, and about the form of lines, lists and brackets. */
import type { InstructionCheck } from './instruction.ts';
import { bare, countOf, pieces, sentencesOf, withoutPunctuation } from './text-parts.ts';

const closing: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
const headings = ['My Answer:', 'My Conclusion:', 'Future Outlook:'];

const plain = (text: string): readonly string[] => pieces(withoutPunctuation(text));
const pairsHold = <One>(all: readonly One[], holds: (one: One, next: One) => boolean): boolean =>
  all.slice(1).every((next, index) => holds(all[index] as One, next));
const letterOf = (word: string): string => Array.from(word)[0] ?? '';

export const placeChecks: Readonly<Record<string, InstructionCheck>> = {
  'words:alphabet': (text) => {
    const firsts = plain(text.toLowerCase()).map(letterOf);
    const following = (letter: string): string =>
      letter === 'z' ? 'a' : String.fromCharCode(letter.charCodeAt(0) + 1);
    return (
      /^[a-z]/.test(firsts[0] ?? '') && pairsHold(firsts, (one, next) => following(one) === next)
    );
  },
  'words:no_consecutive': (text) =>
    pairsHold(plain(text.toLowerCase()).map(letterOf), (one, next) => one !== next),
  'words:last_first': (text) =>
    pairsHold(sentencesOf(text), (one, next) => {
      const last = pieces(bare(one)).at(-1)?.toLowerCase();
      return last !== undefined && last === pieces(bare(next))[0]?.toLowerCase();
    }),
  'words:paragraph_last_first': (text) =>
    text
      .toLowerCase()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => pieces(bare(line.trim())))
      .every((words) => words.length > 0 && words[0] === words.at(-1)),
  'sentence:keyword': (text, args) => {
    const sentence = sentencesOf(text)[args.number('N') - 1];
    return sentence?.toLowerCase().includes(args.text('word').toLowerCase()) ?? false;
  },
  'sentence:increment': (text, args) =>
    pairsHold(
      sentencesOf(text).map((sentence) => plain(sentence).length),
      (one, next) => next === one + args.number('small_n'),
    ),
  'sentence:alliteration_increment': (text) =>
    pairsHold([-1, ...sentencesOf(text).map(alliteration)], (one, next) => next > one),
  'format:parentheses': holdsBrackets,
  'format:quotes': holdsQuotes,
  'format:options': (text, args) => {
    const options = args.text('options');
    const mark = options.includes('/') ? '/' : options.includes('or') ? 'or' : ',';
    const known = options.split(mark).map((option) => option.trim());
    if (/^[^\p{L}\p{N}_]*a[^\p{L}\p{N}_]*b[^\p{L}\p{N}_]*c/iu.test(options))
      return known.includes(text);
    return known.some((option) => bare(option).toLowerCase() === bare(text).toLowerCase());
  },
  'format:newline': (text) => {
    const lines = withoutPunctuation(text).trim().split('\n');
    return lines.filter((line) => line !== '').length === plain(text).length;
  },
  'format:line_indent': (text) =>
    pairsHold(
      text
        .split('\n')
        .filter((line) => line.trim() !== '')
        .map((line) => line.length - line.replace(/^ +/, '').length),
      (one, next) => next > one,
    ),
  'format:quote_unquote': (text) => {
    const close = text.replaceAll(/[“”]/g, '"').replaceAll(`'"'`, '').replaceAll(/\s/g, '');
    const core = close.replaceAll(/^[0-9!#-/:-@[-`{-~]+|[0-9!#-/:-@[-`{-~]+$/g, '');
    return !close.includes('""') && core !== '' && !core.endsWith('"');
  },
  'format:list': (text, args) => countOf(text, args.text('sep')) >= 2,
  'format:thesis': (text) => {
    const begin = text.includes('<i>') ? text.indexOf('<i>') : text.indexOf('<em>');
    const from = begin < 0 ? '' : text.slice(begin);
    const end = from.includes('</i>') ? from.indexOf('</i>') : from.indexOf('</em>');
    return end >= 0 && from.slice(3, end).trim() !== '' && from.slice(end + 4).trim() !== '';
  },
  'format:sub-bullets': (text) =>
    text
      .split('*')
      .slice(1)
      .every((bullet) => bullet.includes('-')),
  'format:no_bullets_bullets': (text) => {
    const lines = text.split('\n').map((line) => line.trim());
    const first = lines.findIndex((line) => line.startsWith('*'));
    const before = lines.slice(0, Math.max(0, first));
    const said = before.reduce((count, line) => count + sentencesOf(line).length, 0);
    const bullets = first < 0 ? [] : lines.slice(first);
    // A blank line ends the text before the list, and nothing but bullets may follow.
    const isOneText = !before.slice(0, -1).includes('');
    return (
      isOneText && said >= 2 && bullets.length >= 2 && bullets.every((line) => line.startsWith('*'))
    );
  },
  'format:output_template': (text) => headings.every((heading) => text.includes(heading)),
  'format:no_whitespace': (text) => !/\s/.test(text),
};

/** How many words stand beside one that begins with the same letter, in runs. */
function alliteration(sentence: string): number {
  const firsts = pieces(sentence.toLowerCase())
    .map((word) => letterOf(word.replace(/^[!-/:-@[-`{-~ ]+/, '')))
    .filter((letter) => letter !== '');
  let [count, isRun] = [0, false];
  for (const [index, letter] of firsts.slice(1).entries()) {
    const isSame = letter === firsts[index];
    if (isSame) count += isRun ? 1 : 2;
    isRun = isSame;
  }
  return count;
}

/** Brackets of any kind, five deep at least; one that does not fit begins the count anew. */
function holdsBrackets(text: string): boolean {
  let open: string[] = [];
  let depth = 0;
  for (const letter of text) {
    const partner = closing[letter];
    if ('([{'.includes(letter)) depth = Math.max(depth, open.push(letter));
    else if (partner !== undefined && open.at(-1) === partner) {
      open.pop();
      if (depth >= 5) return true;
    } else if (partner !== undefined) [open, depth] = [[], 0];
  }
  return false;
}

/** Quotes within quotes, of both kinds in turn: three that were opened are closed. */
function holdsQuotes(text: string): boolean {
  const open: string[] = [];
  let depth = 0;
  for (const letter of text) {
    if (letter === open.at(-1)) {
      open.pop();
      if (depth - open.length >= 3) return true;
    } else if (letter === '"' || letter === "'") depth = Math.max(depth, open.push(letter));
  }
  return false;
}
