import type { EnvironmentProvider, FoundSandbox } from '../environment.ts';
import type { Reaping, ReapOptions } from './reaper.ts';

/** Clocks of machines differ. */
const expiryGraceMs = 10 * 60_000;

/**
 * Whether a sandbox of another state folder has nobody any more: its machine may be gone for good. Providers end what is past its expiry, and some leave remains.
 * On this machine the other state folder is not gone: what it left is its own to remove.
 */
export function isAbandoned(
  { labels }: FoundSandbox,
  provider: Pick<EnvironmentProvider, 'isRemote'>,
  nowMs: number,
): boolean {
  return provider.isRemote === true && Date.parse(labels.expiresAt) + expiryGraceMs < nowMs;
}

/**
 * Removes sandboxes that carry this state folder's id although no live run owns them: their journal was lost, or could not be read; and those of other machines that
 * are abandoned. Sandboxes are listed before the live runs are asked for, so that a run that begins meanwhile cannot be missed.
 */
export async function sweepByLabel(
  reaping: Reaping,
  options: ReapOptions,
  deadRuns: readonly string[],
): Promise<{ readonly expiredForeign: readonly FoundSandbox[] }> {
  const found = await Promise.all(
    [...options.providers].map(async ([kind, provider]) => {
      try {
        const listed = await provider.list(reaping.signal);
        return listed.map((sandbox) => ({ kind, provider, sandbox }));
      } catch (error) {
        reaping.fail(`sandboxes of ${kind}`, error);
        return [];
      }
    }),
  );
  const { storeId } = options.journals;
  // The dead runs in hand are locked by this very cleaning, not alive.
  const liveRuns = (await options.journals.liveRuns()).filter((id) => !deadRuns.includes(id));
  const live = new Set(liveRuns);
  const [own, foreign] = partition(
    found.flat(),
    ({ sandbox }) => sandbox.labels.storeId === storeId,
  );
  const nowMs = options.clock.now().getTime();
  const [abandoned, others] = partition(foreign, ({ sandbox, provider }) =>
    isAbandoned(sandbox, provider, nowMs),
  );
  const unowned = own.filter(({ sandbox }) => !live.has(sandbox.labels.runId));
  await Promise.all(
    [...unowned, ...abandoned]
      .filter(({ sandbox }) => !reaping.wasTried(sandbox.name))
      .map(({ kind, sandbox }) => reaping.remove(kind, sandbox.name)),
  );
  const isExpired = ({ labels }: FoundSandbox): boolean => Date.parse(labels.expiresAt) < nowMs;
  return { expiredForeign: others.map(({ sandbox }) => sandbox).filter(isExpired) };
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}
