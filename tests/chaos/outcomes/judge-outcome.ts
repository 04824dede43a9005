/** Whether what was seen of a rollout is what its row says; pure, so that tampered evidence can show that it is found. */
import { isDeepStrictEqual } from 'node:util';
import type { OutcomeEvidence, OutcomeRow, WireSide } from './outcome-row.ts';

const completionKeys = ['status', 'rollout_id', 'extra_fields', 'err_message', 'err_category'];
const graderKeys = [
  'status',
  'rollout_id',
  'sample',
  'err_message',
  'err_category',
  'extra_fields',
];
const sampleKeys = ['messages', 'label', 'reward', 'remove_sample', 'metrics', 'extra_fields'];

type Body = Readonly<Record<string, unknown>>;

/** One line per thing that is wrong. */
export function judgeOutcome(row: OutcomeRow, seen: OutcomeEvidence): readonly string[] {
  const problems = [...apiProblems(row, seen), ...rewardProblems(seen)];
  if (row.isDeaf === true) return [...problems, ...deafProblems(seen)];
  return [...problems, ...wireProblems(row, seen)];
}

function apiProblems(row: OutcomeRow, { api, status }: OutcomeEvidence): string[] {
  const { verdict, ...fields } = row.api;
  const rewards = (api['verdict'] as { readonly rewards: unknown } | null)?.rewards ?? null;
  return [
    ...Object.entries(fields).flatMap(([key, value]) => differs(`api ${key}`, api[key], value)),
    ...differs('api verdict', rewards, verdict),
    ...differs('api status', api['status'], row.grader.status),
    ...differs('status route', status['status'], row.grader.status),
    ...differs('reward of the status route', status['reward'], row.grader.reward),
  ];
}

/** Whatever the row says: a number is told only of a rollout in which nothing failed and whose verdict it is. */
function rewardProblems({ api, status, callbacks }: OutcomeEvidence): string[] {
  const told = [status['reward'], api['reward'], ...callbacks.map(rewardIn)];
  const numbers = told.filter((reward) => typeof reward === 'number');
  if (numbers.length === 0) return [];
  const rewards = (api['verdict'] as { readonly rewards: Body } | null)?.rewards ?? {};
  return [
    ...(api['cause'] === null ? [] : ['a reward is told although something failed']),
    ...numbers.flatMap((reward) =>
      Object.values(rewards).includes(reward) ? [] : [`made up: reward ${reward}`],
    ),
  ];
}

function rewardIn({ text }: OutcomeEvidence['callbacks'][number]): unknown {
  return (parse(text)?.['sample'] as Body | null | undefined)?.['reward'];
}

function wireProblems(row: OutcomeRow, { callbacks }: OutcomeEvidence): string[] {
  const channels = callbacks.map(({ channel }) => channel);
  const keys = callbacks.map(({ key }) => key);
  const problems = differs('order of callbacks', channels, ['completion', 'grader']);
  if (new Set(keys).size !== keys.length || keys.includes(null))
    problems.push('the callbacks have no keys of their own');
  const [completion, grader] = callbacks.map(({ text }) => parse(text));
  if (completion == null || grader == null) return [...problems, 'a callback is no JSON'];
  for (const { text, channel } of callbacks)
    if (JSON.stringify(parse(text)) !== text) problems.push(`${channel}: not compact JSON`);
  return [
    ...problems,
    ...differs('keys of the completion', Object.keys(completion), completionKeys),
    ...differs('keys of the grader callback', Object.keys(grader), graderKeys),
    ...sideProblems('completion', completion, row.completion),
    ...sideProblems('grader', grader, row.grader),
    ...sampleProblems(grader['sample'] as Body | null | undefined, row),
    ...messageProblems(row, [completion, grader]),
  ];
}

function sideProblems(channel: string, body: Body, side: WireSide): string[] {
  const extra = body['extra_fields'] as Body | null;
  return [
    ...differs(`${channel} status`, body['status'], side.status),
    ...differs(`${channel} category`, body['err_category'], side.category),
    ...(side.status === 'success' && body['err_message'] !== null
      ? [`${channel}: a success with a message`]
      : []),
    ...(typeof extra?.['backend'] === 'string' ? [] : [`${channel}: no diagnostics`]),
  ];
}

function sampleProblems(sample: Body | null | undefined, { grader }: OutcomeRow): string[] {
  if (!grader.hasSample) return differs('sample', sample, null);
  if (sample == null) return ['there is no sample'];
  return [
    ...differs('keys of the sample', Object.keys(sample), sampleKeys),
    ...differs('reward on the wire', sample['reward'], grader.reward),
  ];
}

function messageProblems({ message, name }: OutcomeRow, bodies: readonly Body[]): string[] {
  return bodies.flatMap((body) => {
    if (body['status'] === 'success') return [];
    const said = body['err_message'];
    const isRight =
      message instanceof RegExp ? message.test(String(said)) : said === (message ?? null);
    return isRight ? [] : [`${name}: the message is ${JSON.stringify(said)}`];
  });
}

function deafProblems({ callbacks, deliveries }: OutcomeEvidence): string[] {
  return [
    ...differs('callbacks', callbacks.length, 0),
    ...Object.entries(deliveries).flatMap(([channel, state]) =>
      state === 'delivered' || state === 'withdrawn' ? [`${channel} is ${state}`] : [],
    ),
    ...differs('channels', Object.keys(deliveries).sort(), ['completion', 'grader']),
  ];
}

function differs(what: string, actual: unknown, expected: unknown): string[] {
  if (isDeepStrictEqual(actual, expected)) return [];
  return [`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`];
}

function parse(text: string): Body | null {
  try {
    return JSON.parse(text) as Body;
  } catch {
    return null;
  }
}
