/** The instructions of IFEval by their ids. What needs a model of language is not among them. */
import type { InstructionCheck } from './instruction.ts';
import { countOf, countWords, literal, sentencesOf } from './text-parts.ts';

const answers = ['My answer is yes.', 'My answer is no.', 'My answer is maybe.'];
const fenceBegin = /^```(?:json|Json|JSON)?/;

const matches = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([match]) => match);
const isUpper = (text: string): boolean => /\p{Lu}/u.test(text) && !/\p{Ll}/u.test(text);
const isLower = (text: string): boolean => /\p{Ll}/u.test(text) && !/\p{Lu}/u.test(text);

export const ifevalChecks: Readonly<Record<string, InstructionCheck>> = {
  'keywords:existence': (text, args) =>
    args.texts('keywords').every((word) => text.toLowerCase().includes(word.toLowerCase())),
  'keywords:frequency': (text, args) => {
    const word = args.text('keyword').trim().toLowerCase();
    return args.holds(countOf(text.toLowerCase(), word), 'relation', args.number('frequency'));
  },
  'keywords:forbidden_words': (text, args) =>
    !args.texts('forbidden_words').some((word) => holdsWord(text, word)),
  'keywords:letter_frequency': (text, args) => {
    const count = countOf(text.toLowerCase(), args.text('letter').trim().toLowerCase());
    return args.holds(count, 'let_relation', args.number('let_frequency'));
  },
  'length_constraints:number_sentences': (text, args) =>
    args.holds(sentencesOf(text).length, 'relation', args.number('num_sentences')),
  'length_constraints:number_words': (text, args) =>
    args.holds(countWords(text), 'relation', args.number('num_words')),
  'length_constraints:number_paragraphs': (text, args) => {
    const paragraphs = text.split(/\s?\*\*\*\s?/).map((part) => part.trim());
    if (paragraphs.slice(1, -1).includes('')) return false;
    return paragraphs.filter((part) => part !== '').length === args.number('num_paragraphs');
  },
  'length_constraints:nth_paragraph_first_word': (text, args) => {
    const paragraphs = text.split('\n\n').map((part) => part.trim());
    const count = paragraphs.filter((part) => part !== '').length;
    const place = args.number('nth_paragraph');
    const wanted = args.text('first_word').toLowerCase();
    if (place > count || count !== args.number('num_paragraphs')) return false;
    const [first = ''] = (paragraphs[place - 1] ?? '').split(/\s/);
    const word = first
      .replace(/^'+/, '')
      .replace(/^"+/, '')
      .split(/[.,?!'"]/)[0];
    return first !== '' && word?.toLowerCase() === wanted;
  },
  'detectable_content:number_placeholders': (text, args) =>
    matches(text, /\[[^\n]*?\]/g).length >= args.number('num_placeholders'),
  'detectable_content:postscript': (text, args) => {
    const marker = args.text('postscript_marker').trim();
    if (marker === 'P.P.S') return /p\.\s?p\.\s?s/i.test(text);
    if (marker === 'P.S.') return /p\.\s?s\./i.test(text);
    return text.toLowerCase().includes(marker.toLowerCase());
  },
  'detectable_format:number_bullet_lists': (text, args) =>
    matches(text, /^\s*\*[^*][^\n]*$/gm).length + matches(text, /^\s*-[^\n]*$/gm).length ===
    args.number('num_bullets'),
  'detectable_format:constrained_response': (text) =>
    answers.some((answer) => text.includes(answer)),
  'detectable_format:number_highlighted_sections': (text, args) => {
    const all = [...matches(text, /\*[^\n*]*\*/g), ...matches(text, /\*\*[^\n*]*\*\*/g)];
    const filled = all.filter((part) => part.replaceAll('*', '').trim() !== '');
    return filled.length >= args.number('num_highlights');
  },
  'detectable_format:multiple_sections': (text, args) => {
    const mark = literal(args.text('section_spliter').trim());
    const count = matches(text, new RegExp(`\\s?${mark}\\s?\\d+\\s?`, 'g')).length;
    return count >= args.number('num_sections');
  },
  'detectable_format:json_format': (text) => isJson(unfenced(text.trim())),
  'detectable_format:title': (text) =>
    matches(text, /<<[^\n]+>>/g).some(
      (title) => title.replace(/^<+/, '').replace(/>+$/, '').trim() !== '',
    ),
  'combination:two_responses': (text) => {
    const parts = text.split('******').map((part) => part.trim());
    if (parts.slice(1, -1).includes('')) return false;
    const said = parts.filter((part) => part !== '');
    return said.length === 2 && said[0] !== said[1];
  },
  'combination:repeat_prompt': (text, args) =>
    text.trim().toLowerCase().startsWith(args.text('prompt_to_repeat').trim().toLowerCase()),
  'startend:end_checker': (text, args) =>
    text
      .trim()
      .replaceAll(/^"+|"+$/g, '')
      .toLowerCase()
      .endsWith(args.text('end_phrase').trim().toLowerCase()),
  'startend:quotation': (text) => /^"[^]*"$/.test(text.trim()),
  'change_case:capital_word_frequency': (text, args) => {
    const capital = matches(text, /[\p{L}\p{N}_](?:['’.&-]?[\p{L}\p{N}_])*/gu).filter(isUpper);
    return args.holds(capital.length, 'capital_relation', args.number('capital_frequency'));
  },
  'change_case:english_capital': isUpper,
  'change_case:english_lowercase': isLower,
  'punctuation:no_comma': (text) => !text.includes(','),
};

function holdsWord(text: string, word: string): boolean {
  const inWord = '[\\p{L}\\p{N}_]';
  return new RegExp(`(?<!${inWord})${literal(word)}(?!${inWord})`, 'iu').test(text);
}

const unfenced = (text: string): string => text.replace(fenceBegin, '').replace(/```$/, '').trim();

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
