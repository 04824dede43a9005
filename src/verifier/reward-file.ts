/** What the reward files of a verifier say: pure, and strict about numbers. Nothing here invents or clamps a reward. */
import { RolloutError, type ErrorCode } from '../core/errors.ts';

export type Rewards = Readonly<Record<string, number>>;

export interface RewardFiles {
  /** Text of `reward.json`; null = there is none. It wins over `reward.txt`. */
  readonly json: string | null;
  readonly text: string | null;
}

/**
 * Throws REWARD_MISSING without either file, REWARD_EMPTY for a file of no bytes, REWARD_INVALID for anything but a number or an object of
 * numbers, REWARD_NOT_FINITE for NaN and infinities. Booleans and numeric strings count as numbers; `{}` is a verdict without channels.
 */
export function readRewards(files: RewardFiles): Rewards {
  if (files.json !== null) return parseRewardJson(files.json);
  if (files.text !== null) return parseRewardText(files.text);
  throw complaint('REWARD_MISSING', 'reward.txt', {
    message: 'the test script wrote neither reward.json nor reward.txt',
    remedy:
      'Let the test script write a number to /logs/verifier/reward.txt in every case, also when a test fails.',
  });
}

function parseRewardText(text: string): Rewards {
  const file = 'reward.txt';
  if (text === '') throw empty(file);
  const value = readNumber(text);
  if (value === null) throw invalid(file, `${file} holds ${excerpt(text)}, which is not a number`);
  return { reward: finite(value, file, 'reward') };
}

function parseRewardJson(text: string): Rewards {
  const file = 'reward.json';
  if (text === '') throw empty(file);
  const document = parseJson(text, file);
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw invalid(
      file,
      `${file} holds ${document === null ? 'null' : excerpt(text)} instead of an object of numbers`,
    );
  return Object.fromEntries(
    Object.entries(document).map(([channel, value]) => [channel, channelValue(value, channel)]),
  );
}

function channelValue(value: unknown, channel: string): number {
  const file = 'reward.json';
  const number =
    typeof value === 'number'
      ? value
      : typeof value === 'boolean'
        ? Number(value)
        : typeof value === 'string'
          ? readNumber(value)
          : null;
  if (number !== null) return finite(number, file, channel);
  throw invalid(
    file,
    `channel ${JSON.stringify(channel)} of ${file} holds ${described(value)}, which is not a number`,
  );
}

// Each digit can match in one way only, so that a long text takes no longer than it is.
const decimal = /^[+-]?(\d+(_\d+)*(\.(\d+(_\d+)*)?)?|\.\d+(_\d+)*)(e[+-]?\d+)?$/i;
const notFinite = /^[+-]?(nan|inf(inity)?)$/i;

/** What Python's `float` reads; NaN stands for every value that is not finite. */
function readNumber(text: string): number | null {
  const word = text.trim();
  if (notFinite.test(word)) return NaN;
  return decimal.test(word) ? Number(word.replaceAll('_', '')) : null;
}

/** Numbers that Python's `json` writes and JSON forbids, beside strings, of which the last may lack its end. */
const foreignNumber = /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$)|-?(?:NaN|Infinity)/g;

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // 1e999 is a number of JSON that reads as Infinity.
    const finiteLooking = text.replace(foreignNumber, (token) =>
      token.startsWith('"') ? token : '1e999',
    );
    try {
      return JSON.parse(finiteLooking);
    } catch {
      throw invalid(file, `${file} is not JSON: ${excerpt(text)}`, error);
    }
  }
}

function finite(value: number, file: string, channel: string): number {
  if (Number.isFinite(value)) return value;
  throw complaint('REWARD_NOT_FINITE', file, {
    message: `channel ${JSON.stringify(channel)} of ${file} is NaN or infinite`,
    remedy: 'Let the test script write a finite number, or fail when it has none.',
  });
}

function empty(file: string): RolloutError {
  return complaint('REWARD_EMPTY', file, {
    message: `the test script left ${file} empty`,
    remedy: `Let the test script write a number to /logs/verifier/${file}.`,
  });
}

function invalid(file: string, message: string, cause?: unknown): RolloutError {
  const remedy =
    file === 'reward.txt'
      ? 'Write one number and nothing else.'
      : 'Write an object whose values are numbers.';
  return complaint('REWARD_INVALID', file, { message, remedy, cause });
}

function complaint(
  code: ErrorCode,
  file: string,
  { message, remedy, cause }: Complaint,
): RolloutError {
  const field = `/logs/verifier/${file}`;
  return new RolloutError(code, message, { phase: 'verifier', field, remedy, cause });
}

interface Complaint {
  readonly message: string;
  readonly remedy: string;
  readonly cause?: unknown;
}

/** A list or an object is not written out: it may be nested deeper than a stack. */
function described(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return excerpt(JSON.stringify(value));
}

function excerpt(text: string): string {
  const limit = 80;
  const line = text.trim();
  return JSON.stringify(line.length > limit ? `${line.slice(0, limit)}…` : line);
}
