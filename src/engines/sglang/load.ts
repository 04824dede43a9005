/** SGLang's load, by its present route and the older one. Data-parallel ranks come one by one. */
import type { EngineLoad } from '../engine.ts';
import { listOf, numberOf, recordOf } from '../shared/json.ts';

/** `/v1/loads`; null = not that document. */
export function loadOfLoads(document: unknown): EngineLoad | null {
  const ranks = listOf(recordOf(document)?.['loads'])?.map((rank) => recordOf(rank) ?? {});
  if (ranks === undefined || ranks.length === 0) return null;
  const running = ranks.map((rank) => numberOf(rank['num_running_reqs']));
  const waiting = ranks.map((rank) => numberOf(rank['num_waiting_reqs']));
  if (!areAll(running) || !areAll(waiting)) return null;
  const use = ranks.map((rank) => numberOf(rank['token_usage'])).filter((each) => each !== null);
  return {
    runningRequests: sum(running),
    waitingRequests: sum(waiting),
    // The fullest rank decides whether more fits.
    kvUse: use.length === 0 ? null : Math.max(...use),
  };
}

/** `/get_load`, whose `num_reqs` counts those that wait, too; null = not that document. */
export function loadOfGetLoad(document: unknown): EngineLoad | null {
  const ranks = (listOf(document) ?? [document]).map((rank) => recordOf(rank) ?? {});
  const all = ranks.map((rank) => numberOf(rank['num_reqs']));
  const waiting = ranks.map((rank) => numberOf(rank['num_waiting_reqs']));
  if (!areAll(all) || !areAll(waiting) || ranks.length === 0) return null;
  return {
    runningRequests: sum(all) - sum(waiting),
    waitingRequests: sum(waiting),
    kvUse: null,
  };
}

function areAll(values: readonly (number | null)[]): values is readonly number[] {
  return values.every((value) => value !== null);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
