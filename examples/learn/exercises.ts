/** What is learnt: which letter belongs to which word. A rollout asks for two of them, one after the other, and is worth the share of right replies. */

export const letters: readonly string[] = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];

export const words: readonly string[] = [
  ...['anchor', 'basin', 'crane', 'dock', 'ebb', 'fender', 'gangway', 'hull'],
];

/** No rule connects them: it has to be learnt. */
const solution: readonly number[] = [5, 2, 7, 0, 3, 6, 1, 4];

export const question = (word: string): string => `Which letter belongs to ${word}?`;

export function rightLetter(word: string): string {
  return letters[solution[words.indexOf(word)] ?? -1] ?? '';
}

/** The exercise that a question asks; -1 = it asks something else. */
export function exerciseOf(text: string): number {
  return words.findIndex((word) => text === question(word));
}

/** Rows of the dataset: every word is once the first and once the second. */
export const rows: readonly {
  readonly messages: readonly { readonly role: 'user'; readonly content: string }[];
  readonly label: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}[] = words.map((first, index) => {
  const second = words[(index + 3) % words.length] ?? first;
  return {
    messages: [{ role: 'user', content: question(first) }],
    label: `${rightLetter(first)}${rightLetter(second)}`,
    metadata: { then: question(second) },
  };
});
