/** Multiple choice: 1 where the response chooses the right letter, or says the right choice in words. */
import type { RewardSample } from './reward.ts';

const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
const defaultCount = 8;

const statements = [
  /(?:answer|option|choice)\s*(?:is|:)?\s*([a-z])/i,
  /([a-z])\s*(?:is\s*(?:the)?\s*correct)/i,
  /final\s*(?:answer|option)\s*(?:is|:)?\s*([a-z])/i,
];

/** What a sample says of its exercise. */
interface Question {
  readonly choices: readonly string[];
  readonly valid: readonly string[];
  readonly correct: string | null;
  /** A label that is text. */
  readonly label: string | null;
  /** Texts any of which is the answer, normalised. */
  readonly answers: readonly string[];
}

/** 1 or 0. Read from `metadata`: `choices` (a list or an object), `valid_letters`, `correct_letter`, `correct_answer`, `answer_text`. */
export function gpqaReward(sample: RewardSample): number {
  if (sample.response === null) return 0;
  const question = readQuestion(sample);
  const said = sample.response.split('</think>').at(-1) ?? '';
  const chosen = chosenLetter(said, question.valid);
  if (chosen !== null && question.correct !== null) return chosen === question.correct ? 1 : 0;
  const response = normal(said);
  if (question.answers.some((answer) => response.includes(answer))) return 1;
  const label = question.label?.toUpperCase();
  return chosen !== null && question.correct === null && chosen === label ? 1 : 0;
}

function readQuestion({ metadata, label }: RewardSample): Question {
  const choices = listOf(metadata['choices']);
  const named = listOf(metadata['valid_letters']).map((letter) => letter.toUpperCase());
  const valid =
    named.length > 0 ? named : letters.slice(0, choices.length > 0 ? choices.length : defaultCount);
  const labelWords = typeof label === 'string' ? label.trim() : null;
  const correct = correctLetter({ metadata, label, labelWords, valid, choices });
  const place = correct === null ? -1 : valid.indexOf(correct);
  const answers = [choices[place], metadata['correct_answer'], metadata['answer_text'], labelWords]
    .map((answer) => normal(wordOf(answer)))
    .filter((answer) => answer !== '');
  return { choices, valid, correct, label: labelWords, answers };
}

function correctLetter(of: {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly label: unknown;
  readonly labelWords: string | null;
  readonly valid: readonly string[];
  readonly choices: readonly string[];
}): string | null {
  const stated = of.metadata['correct_letter'];
  const named = typeof stated === 'string' ? stated.trim().toUpperCase() : '';
  if (typeof of.label === 'number') {
    const place = Math.trunc(of.label);
    return of.valid[place] ?? (named === '' ? null : named);
  }
  if (named !== '') return named;
  if (of.labelWords === null || of.labelWords === '') return null;
  const letter = of.labelWords.toUpperCase();
  if (letter.length === 1 && of.valid.includes(letter)) return letter;
  const wanted = normal(of.labelWords);
  return of.valid[of.choices.findIndex((choice) => normal(choice) === wanted)] ?? null;
}

/** The letter that a sentence names as the answer, else the last capital that stands alone; null = none of the valid ones. */
function chosenLetter(text: string, valid: readonly string[]): string | null {
  for (const statement of statements) {
    const letter = statement.exec(text)?.[1]?.toUpperCase();
    if (letter !== undefined && valid.includes(letter)) return letter;
  }
  const alone = [...text.matchAll(/(?<![\p{L}\p{N}_])[A-Z](?![\p{L}\p{N}_])/gu)].map(([at]) => at);
  return alone.findLast((letter) => valid.includes(letter)) ?? null;
}

const normal = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, ' ')
    .trim();

function listOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.map(wordOf);
  if (typeof value === 'string') return Array.from(value);
  if (typeof value === 'object' && value !== null) return Object.values(value).map(wordOf);
  return [];
}

function wordOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
