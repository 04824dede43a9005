/** The conformance suite of the rollout store: every adapter keeps every promise of the port. */
import { describe, test } from 'node:test';
import { StoreBench, startMs, type StoreAdapter, type StoreCase } from './store/bench.ts';
import { callbackCases } from './store/cases/callbacks.ts';
import { eventCases } from './store/cases/events.ts';
import { retentionCases } from './store/cases/retention.ts';
import { rolloutCases } from './store/cases/rollouts.ts';

export const storeCases: readonly StoreCase[] = [
  ...rolloutCases,
  ...callbackCases,
  ...eventCases,
  ...retentionCases,
];

export function storeSuite(adapter: StoreAdapter): void {
  describe(`store conformance: ${adapter.name}`, { concurrency: 4 }, () => {
    for (const storeCase of storeCases)
      test(`${storeCase.id}: ${storeCase.title}`, () => runStoreCase(storeCase, adapter));
  });
}

export async function runStoreCase(storeCase: StoreCase, adapter: StoreAdapter): Promise<void> {
  const clock = { nowMs: startMs };
  await using open = await adapter.open(() => new Date(clock.nowMs));
  if (storeCase.needsDurability === true && open.reopen === null) return;
  await storeCase.run(new StoreBench(open, clock));
}
