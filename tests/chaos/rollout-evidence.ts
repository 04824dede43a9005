/** What a controller saw of its rollouts while their server was killed again and again, and what must be true of it. */
import type { CallbackChannel } from '../../src/wire/rollout/callback-payloads.ts';

export interface SeenCallback {
  readonly channel: CallbackChannel;
  readonly key: string | null;
  readonly text: string;
  /** False: its receiver was in trouble, or its sender died. */
  readonly isTaken: boolean;
}

export interface RolloutEvidence {
  readonly id: string;
  /** What the request asked for. */
  readonly reward: number;
  /** `cancelled`: the server said so; `open`: neither an end nor a cancellation came in time. */
  readonly end: 'callback' | 'cancelled' | 'open';
  /** Ends that the controller made durable. */
  readonly commits: number;
  /** In order, repeated ones included. */
  readonly callbacks: readonly SeenCallback[];
  /** How many of them had come when the server said that it was cancelled. */
  readonly callbacksAtCancel: number;
  /** What the status route says at last. */
  readonly status: string;
  readonly statusReward: number | null;
}

/** One line for everything that is wrong. */
export function judgeRollout(evidence: RolloutEvidence): readonly string[] {
  const { id, end, commits, callbacks, status } = evidence;
  const problems: string[] = [];
  for (const channel of ['completion', 'grader'] as const) {
    const own = callbacks.filter((callback) => callback.channel === channel);
    if (new Set(own.map(({ text }) => text)).size > 1)
      problems.push(`two different ${channel} bodies`);
    if (new Set(own.map(({ key }) => key)).size > 1) problems.push(`two ${channel} keys`);
    if (own.some(({ key }) => key === null || key === '')) problems.push(`no ${channel} key`);
  }
  if (end === 'open') problems.push(`no end (its server says ${status})`);
  else if (end === 'cancelled') problems.push(...ofCancelled(evidence));
  else problems.push(...ofEnded(evidence));
  if (commits > 1) problems.push(`${commits} ends were committed`);
  return problems.map((problem) => `${id}: ${problem}`);
}

function ofCancelled({
  callbacks,
  callbacksAtCancel,
  commits,
  status,
}: RolloutEvidence): readonly string[] {
  return [
    ...(callbacks.length > callbacksAtCancel ? ['a callback after the cancellation'] : []),
    ...(callbacks.some(({ channel }) => channel === 'grader') ? ['cancelled, yet graded'] : []),
    ...(commits > 0 ? ['cancelled, yet committed'] : []),
    ...(status === 'cancelled' ? [] : [`cancelled, yet its server says ${status}`]),
  ];
}

function ofEnded({
  callbacks,
  commits,
  reward,
  status,
  statusReward,
}: RolloutEvidence): readonly string[] {
  const taken = callbacks.filter(({ isTaken }) => isTaken);
  const last = taken.findLast(({ channel }) => channel === 'grader');
  if (last === undefined || commits !== 1) return ['ended without a committed grade'];
  const body = JSON.parse(last.text) as {
    readonly status: string;
    readonly sample?: { readonly reward?: number | null } | null;
  };
  const told = body.sample?.reward ?? null;
  return [
    ...(taken.some(({ channel }) => channel === 'completion') ? [] : ['no completion']),
    ...(taken[0]?.channel === 'completion' ? [] : ['the grade came before the completion']),
    ...(told === (body.status === 'success' ? reward : null) ? [] : [`a reward of ${told}`]),
    ...(status === body.status && statusReward === told
      ? []
      : [`told ${body.status} ${told}, its server says ${status} ${statusReward}`]),
  ];
}
