/** Rollouts that are told wrong, which a judge has to notice. */
import { judgeRollout } from './judge-branches.ts';
import type { KnownCall } from './synthetic-agent.ts';
import { syntheticRollout } from './synthetic-rollouts.ts';

export interface Control {
  readonly title: string;
  readonly break: (calls: readonly KnownCall[]) => readonly KnownCall[];
}

function given(call: KnownCall, change: Partial<KnownCall['given']>): KnownCall {
  return { ...call, given: { ...call.given, ...change } };
}

/** Changes what the forest is told and leaves what is known. */
export const controls: readonly Control[] = [
  {
    title: 'histories that are encoded again, with one token split in another way',
    break: (calls) =>
      calls.map((call) => {
        const ids = [...call.given.promptIds];
        return call.parent === null ? call : given(call, { promptIds: ids.with(1, 1) });
      }),
  },
  {
    title: 'calls that lose their purpose',
    break: (calls) => calls.map((call) => given(call, { purpose: 'turn' })),
  },
  {
    title: 'calls that do not say who makes them',
    break: (calls) => calls.map((call) => given(call, { client: null })),
  },
  {
    title: 'calls whose messages are not known',
    break: (calls) => calls.map((call) => given(call, { messages: null })),
  },
];

export function findsIt({ break: change }: Control, seed: number): boolean {
  const rollout = syntheticRollout(seed, 24);
  const told = change(rollout.calls);
  try {
    judgeRollout(rollout, { told: told.map((call) => call.given) });
    return false;
  } catch {
    return true;
  }
}
