import type { Policy } from '../policy.ts';

/** Texts that tokenise in more ways than one, and what decoders break on. */
const pieces = [
  'the', ' the', 'The', '  ', '    ', '\n', '\r\n', '\n\n\n', '\t', ' \n', 'aaaaaaa', 'ababab', '0000', '1234567', ' 3.14159', '...', '!!!',
  '// //', '"quoted"', "it's", 'naïve', 'e\u0301', 'ﬁ', 'Straße', '日本語', '한국어', 'العربية', '👍', '👩‍👩‍👧‍👦', '🏳️‍🌈', '\u200b', '\ufeff',
  '<think>', '</think>', '<b>', '</b>', '&amp;', '\\n', '\\u0041', '{"a": [1, 2]}', 'import os', ' = ', '==', '->', ' return',
] as const; // prettier-ignore

/** Seeded text of 5 to 60 pieces; every third reply with reasoning before it. */
export const randomText: Policy = ({ random }) => {
  const text = (least: number, most: number): string => {
    const count = least + Math.floor(random() * (most - least + 1));
    return Array.from({ length: count }, () => pieces[Math.floor(random() * pieces.length)]).join(
      random() < 0.5 ? ' ' : '',
    );
  };
  const content = text(5, 60);
  return random() < 1 / 3 ? { content, reasoning: withoutTags(text(3, 20)) } : { content };
};

/** Reasoning ends at the first closing tag, so it holds none. */
function withoutTags(text: string): string {
  return text.replaceAll(/<\/?think>/g, '');
}
