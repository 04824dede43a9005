/** Between the user's objects and plain samples, in the thread: what cannot be a sample is refused here, in the words of what is wrong. */
import { z } from 'zod';
import type { ThreadSample } from './thread-messages.ts';
import { AnswerError } from './thread-failure.ts';
import type { GraderSample } from './user-code.ts';

/** Reading a longer text would hold up the server. */
export const maxSampleLength = 16 * 1024 * 1024;

const record = z.record(z.string(), z.unknown());
const messages = z.array(record);
const outputSchema = z.strictObject({
  messages: messages.nullish().default(null),
  metrics: z.record(z.string(), z.number()).default({}),
  info: record.optional(),
});
const gradedSchema = z.object({
  messages,
  label: z.string().nullable(),
  reward: z.number().nullable(),
  removeSample: z.boolean(),
  metrics: record,
  extraFields: record,
});

/** JSON of the sample that a workflow answered; null = none. Throws AnswerError. */
export function workflowSample(answer: unknown): string | null {
  if (answer === undefined || answer === null) return null;
  const given = Array.isArray(answer) ? { messages: answer as unknown[] } : answer;
  const parsed = outputSchema.safeParse(given);
  if (!parsed.success) throw wrong('the workflow answered no sample', parsed.error);
  if (parsed.data.messages === null) return null;
  return textOf({
    messages: parsed.data.messages,
    label: null,
    reward: null,
    isRemoved: false,
    metrics: parsed.data.metrics,
    extraFields: {},
  });
}

/** The sample as a grader works on it. A reward is checked when it is assigned, so that the error stands where the mistake is. */
export function graderSample(text: string): GraderSample {
  const { isRemoved, reward, ...sample } = JSON.parse(text) as ThreadSample;
  let kept = reward;
  return {
    messages: [...sample.messages],
    label: sample.label,
    removeSample: isRemoved,
    metrics: { ...sample.metrics },
    extraFields: { ...sample.extraFields },
    get reward() {
      return kept;
    },
    set reward(value: number | null) {
      if (value !== null && typeof value !== 'number')
        throw new TypeError(`a reward is a number, not ${typeof value}`);
      if (value !== null && !Number.isFinite(value))
        throw new RangeError(`a reward is finite, not ${value}`);
      kept = value;
    },
  };
}

/** JSON of what the grader left. Throws AnswerError, also when there is no reward although the sample stays. */
export function gradedSample(sample: GraderSample): string {
  const parsed = gradedSchema.safeParse({ ...sample });
  if (!parsed.success) throw wrong('the grader left no sample', parsed.error);
  const { removeSample, ...rest } = parsed.data;
  if (rest.reward === null && !removeSample) throw new AnswerError('the grader set no reward');
  const graded: ThreadSample = { ...rest, isRemoved: removeSample };
  try {
    return textOf(graded);
  } catch {
    // An earned reward outlives what cannot be said beside it.
    return textOf({ ...graded, messages: [], metrics: {}, extraFields: {} });
  }
}

function textOf(sample: ThreadSample): string {
  let text: string;
  try {
    text = JSON.stringify(sample, sayable);
  } catch (error) {
    throw new AnswerError(`the sample is not JSON: ${String(error)}`);
  }
  if (text.length <= maxSampleLength) return text;
  throw new AnswerError(`the sample is longer than ${maxSampleLength / 1024 / 1024} MiB`);
}

/** What JSON has no word for is left out. */
function sayable(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' && !Number.isFinite(value) ? undefined : value;
}

function wrong(what: string, { issues }: z.ZodError): AnswerError {
  const problems = issues.map((issue) => {
    const at = issue.path.map(String).join('.');
    return at === '' ? issue.message : `${at}: ${issue.message}`;
  });
  return new AnswerError(`${what}: ${problems.join('; ')}`);
}
