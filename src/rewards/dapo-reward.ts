/** The reward of the DAPO recipe: the last line that begins with `Answer:`, against an integer. */
import { RolloutError } from '../core/errors.ts';
import { labelText, type RewardSample } from './reward.ts';

/** No answer is longer; what came before is not looked at. */
const lookedAt = 300;
const noAnswer = '[INVALID]';

export interface DapoReward extends Readonly<Record<string, unknown>> {
  readonly score: 1 | -1;
  readonly acc: boolean;
  /** The answer that was found, in its normal spelling. */
  readonly pred: string;
}

/** REWARD_LABEL_INVALID where the label is no number. */
export function dapoReward({ response, label }: RewardSample): DapoReward {
  const end = Array.from(response ?? '')
    .slice(-lookedAt)
    .join('');
  const lines = [...end.matchAll(/answer\s*:\s*([^\n]+)/gi)];
  const pred = normalAnswer(lines.at(-1)?.[1] ?? noAnswer);
  const isCorrect = pred === integerLabel(label);
  return { score: isCorrect ? 1 : -1, acc: isCorrect, pred };
}

function integerLabel(label: unknown): string {
  const text = normalAnswer(labelText(label));
  const value = text === '' ? NaN : Math.trunc(Number(text));
  if (Number.isFinite(value)) return String(BigInt(value));
  throw new RolloutError('REWARD_LABEL_INVALID', 'The label of a dapo reward is not a number.', {
    phase: 'verifier',
    field: 'label',
    remedy: 'Give the answer as an integer, or choose the reward type math.',
  });
}

/** In this order: a later one would not find what an earlier one makes of the text. */
const replaced: readonly (readonly [string, string])[] = [
  ['an ', ''],
  ['a ', ''],
  ['.$', '$'],
  ['\\$', ''],
  ['\\ ', ''],
  [' ', ''],
  ['mbox', 'text'],
  [',\\text{and}', ','],
  ['\\text{and}', ','],
  ['\\text{m}', '\\text{}'],
];

const dropped: readonly string[] = [
  ...['square', 'ways', 'integers', 'dollars', 'mph', 'inches', 'hours', 'km', 'units'],
  ...['\\ldots', 'sue', 'points', 'feet', 'minutes', 'digits', 'cents', 'degrees', 'cm', 'gm'],
  ...['pounds', 'meters', 'meals', 'edges', 'students', 'childrentickets', 'multiples'],
  ...['\\text{s}', '\\text{.}', '\\text{\ns}', '\\text{}^2', '\\text{}^3', '\\text{\n}'],
  ...['\\text{}', '\\mathrm{th}', '^\\circ', '^{\\circ}', '\\;', ',\\!', '{,}', '"', '\\dots'],
  ...['<|im_end|>', '<|endoftext|>'],
];

function normalAnswer(answer: string): string {
  let text = answer.split('=').at(-1) ?? '';
  for (const [from, to] of replaced) text = text.replaceAll(from, to);
  for (const word of dropped) text = text.replaceAll(word, '');
  text = text
    .replaceAll(/.*?\$(.*?)\$.*/g, (_all, inner: string) => `$${inner}$`)
    .replaceAll(/\\(?:text|textbf|overline)\{(.*?)\}/g, '$1')
    .replaceAll(/\\boxed\{(.*)\}/g, '$1')
    .replaceAll(/(frac)([^{])(.)/g, '$1{$2}{$3}')
    .replaceAll(/(sqrt)([^{])/g, '$1{$2}')
    .replaceAll('$', '');
  const digits = text.replaceAll(',', '');
  return (/^\p{Nd}+$/u.test(digits) ? digits : text).trim();
}
