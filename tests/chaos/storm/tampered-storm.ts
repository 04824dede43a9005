/** A storm's evidence with one thing wrong: what a judge must find. */
import type { CollectedGroupLine } from '../../../src/wire/api/collected-lines.ts';
import type { StormEvidence, StormVerdict } from './judge-storm.ts';

export interface TamperedStorm {
  readonly what: string;
  readonly evidence: StormEvidence;
  readonly breaks: keyof StormVerdict;
}

/** `evidence` has groups. */
export function tamperedStorms(evidence: StormEvidence): readonly TamperedStorm[] {
  const { groups } = evidence;
  const [first] = groups.toSorted((a, b) => a.group - b.group);
  const others = groups.filter(({ group }) => group !== first?.group);
  const edited = (edit: (group: CollectedGroupLine) => void): StormEvidence => {
    const copy = structuredClone(groups);
    edit(copy[0]!);
    return { ...evidence, groups: copy };
  };
  return [
    {
      ...{ what: 'a group that never came', breaks: 'lost' },
      evidence: { ...evidence, groups: [...others, { ...first!, group: groups.length + 1 }] },
    },
    {
      ...{ what: 'a batch that came twice without a death', breaks: 'lost' },
      evidence: { ...evidence, groups: [...groups, ...groups], mostRepeated: 0 },
    },
    {
      ...{ what: 'a reward that nobody gave', breaks: 'lost' },
      evidence: edited((group) => void Object.assign(group.members[0]!, { reward: 1 })),
    },
    {
      ...{ what: 'another token', breaks: 'inexact' },
      evidence: edited((group) => {
        const sample = group.members[0]!.samples[0]!;
        const tokens = [...sample.tokens];
        tokens[tokens.length - 1]! += 1;
        Object.assign(sample, { tokens });
      }),
    },
    {
      ...{ what: 'another last digit of a log-probability', breaks: 'inexact' },
      evidence: edited((group) => {
        const sample = group.members[0]!.samples[0]!;
        const [head = -1, ...rest] = sample.log_probs ?? [];
        Object.assign(sample, { log_probs: [head * (1 + 2 ** -40), ...rest] });
      }),
    },
    {
      ...{ what: 'a rollout that lives on', breaks: 'leaked' },
      evidence: { ...evidence, left: ['rollout r-1'] },
    },
  ];
}
