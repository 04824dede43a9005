/** The last part of a group's work: rewards, then filters, each within its limit. What throws costs this group. */
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { CollectedGroup, DroppedGroup } from '../group.ts';
import type { CollectorHooks } from '../hooks.ts';
import type { CollectedMember } from '../member.ts';

export type Finished =
  | { readonly kind: 'kept'; readonly group: CollectedGroup }
  | {
      readonly kind: 'dropped';
      readonly reason: DroppedGroup['reason'];
      readonly detail: string | null;
    };

/** Rejects only with the reason of `signal`: nobody wants the group any more. */
export async function finishGroup(
  group: CollectedGroup,
  { hooks, hookMs }: { readonly hooks: CollectorHooks; readonly hookMs: number },
  signal: AbortSignal,
): Promise<Finished> {
  if (group.members.every(({ isMasked }) => isMasked))
    return { kind: 'dropped', reason: 'given-up', detail: 'every member is masked' };
  const call = <T>(what: string, work: (inner: AbortSignal) => T | Promise<T>): Promise<T> =>
    within(what, { hookMs, signal }, work);
  try {
    const scored = await score(group, hooks, call);
    const { groupFilter, sampleFilter } = hooks;
    if (groupFilter !== undefined) {
      const verdict = await call('groupFilter', (inner) => groupFilter(scored, inner));
      expectVerdict(verdict);
      if (!verdict.keep)
        return { kind: 'dropped', reason: 'filtered', detail: verdict.reason ?? null };
    }
    if (sampleFilter === undefined) return { kind: 'kept', group: scored };
    const removed = await call('sampleFilter', (inner) => sampleFilter(scored, inner));
    return { kind: 'kept', group: withRemoved(scored, removed) };
  } catch (error) {
    signal.throwIfAborted();
    return { kind: 'dropped', reason: 'hook-failed', detail: messageOf(error) };
  }
}

type Call = <T>(what: string, work: (inner: AbortSignal) => T | Promise<T>) => Promise<T>;

async function score(
  group: CollectedGroup,
  { groupReward, memberReward }: CollectorHooks,
  call: Call,
): Promise<CollectedGroup> {
  if (groupReward !== undefined) {
    const rewards = await call('groupReward', (inner) => groupReward(group, inner));
    expectOnePerMember('groupReward', rewards, group);
    return withRewards(group, rewards);
  }
  if (memberReward === undefined) return group;
  const rewards = await Promise.all(
    group.members.map(async (member) =>
      member.isMasked || member.reward !== null
        ? member.reward
        : await call('memberReward', (inner) => memberReward(member, inner)),
    ),
  );
  return withRewards(group, rewards);
}

function withRewards(group: CollectedGroup, rewards: readonly (number | null)[]): CollectedGroup {
  const members = group.members.map((member, at): CollectedMember => {
    if (member.isMasked) return { ...member, reward: null };
    const reward = rewards[at] ?? null;
    // A hook in JavaScript may have forgotten to give one: what is not judged must not look as if it were.
    if (!Number.isFinite(reward))
      throw new RangeError(`the reward of member ${at} is no finite number`);
    return { ...member, reward };
  });
  return { ...group, members };
}

function withRemoved(group: CollectedGroup, removed: readonly boolean[]): CollectedGroup {
  expectOnePerMember('sampleFilter', removed, group);
  const members = group.members.map((member, at) => ({
    ...member,
    isRemoved: removed[at] === true,
  }));
  return { ...group, members };
}

function expectVerdict(given: unknown): void {
  if (typeof given === 'object' && given !== null && 'keep' in given) return;
  throw new TypeError('groupFilter has to give { keep, reason }');
}

function expectOnePerMember(what: string, given: unknown, { members }: CollectedGroup): void {
  if (!Array.isArray(given) || given.length !== members.length)
    throw new TypeError(`${what} has to give one value for each of ${members.length} members`);
}

/** A hook that ignores its signal is not waited for either. */
async function within<T>(
  what: string,
  { hookMs, signal }: { readonly hookMs: number; readonly signal: AbortSignal },
  work: (inner: AbortSignal) => T | Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  using link = new LinkedAbort([signal], {
    ms: hookMs,
    reason: () => new Error(`${what} was not done within ${hookMs} ms`),
  });
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(link.signal.reason as Error);
  link.signal.addEventListener('abort', stop, { once: true });
  stopped.promise.catch(() => undefined);
  return await Promise.race([Promise.resolve().then(() => work(link.signal)), stopped.promise]);
}
