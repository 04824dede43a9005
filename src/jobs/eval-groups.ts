import type { TrialSummary } from './trial-summary.ts';

/** Trials whose numbers belong together: one agent, one model, one dataset. */
export interface EvalGroup {
  readonly agentName: string;
  readonly modelName: string | null;
  /** `adhoc` for tasks named on their own. */
  readonly source: string;
  /** How Harbor writes the three in `result.json`: joined by `__`. Never taken apart again. */
  readonly key: string;
  readonly trials: readonly TrialSummary[];
}

/** In order of first appearance. Groups whose joined keys would collide get `#2`, `#3`… */
export function evalGroups(trials: readonly TrialSummary[]): EvalGroup[] {
  const used = new Set<string>();
  const grouped = Map.groupBy(trials, ({ agentName, modelName, source }) =>
    JSON.stringify([agentName, modelName, source]),
  );
  return [...grouped.values()].flatMap((members) => {
    const [first] = members;
    if (first === undefined) return [];
    const { agentName, modelName } = first;
    const source = first.source ?? 'adhoc';
    const joined = [agentName, ...(modelName === null ? [] : [modelName]), source].join('__');
    let key = joined;
    for (let n = 2; used.has(key); n += 1) key = `${joined}#${n}`;
    used.add(key);
    return [{ agentName, modelName, source, key, trials: members }];
  });
}
