import type { FoundSandbox } from '../environment.ts';
import type { Reaping, ReapOptions } from './reaper.ts';

/**
 * Removes sandboxes that carry this state folder's id although no live run owns them: their journal was lost, or could not be read.
 * Sandboxes are listed before the live runs are asked for, so that a run that begins meanwhile cannot be missed.
 */
export async function sweepByLabel(
  reaping: Reaping,
  options: ReapOptions,
  deadRuns: readonly string[],
): Promise<{ readonly expiredForeign: readonly FoundSandbox[] }> {
  const found = await Promise.all(
    [...options.providers].map(async ([kind, provider]) => {
      try {
        return (await provider.list(reaping.signal)).map((sandbox) => ({ kind, sandbox }));
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
  await Promise.all(
    own
      .filter(({ sandbox }) => !live.has(sandbox.labels.runId) && !reaping.wasTried(sandbox.name))
      .map(({ kind, sandbox }) => reaping.remove(kind, sandbox.name)),
  );
  const nowMs = options.clock.now().getTime();
  const isExpired = ({ labels }: FoundSandbox): boolean => Date.parse(labels.expiresAt) < nowMs;
  return { expiredForeign: foreign.map(({ sandbox }) => sandbox).filter(isExpired) };
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}
