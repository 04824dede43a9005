/** The two mistakes that a pipeline of samples can make without anybody noticing, for the controls: masks or log-probabilities that are one token late. */
import type { CollectedGroup } from '../../src/collector/group.ts';
import type { TrainingSample } from '../../src/collector/training-sample.ts';

export type Mistake = 'masks' | 'logprobs';

export function withMistake(group: CollectedGroup, mistake: Mistake): CollectedGroup {
  const members = group.members.map((member) => ({
    ...member,
    end: { ...member.end, samples: member.end.samples.map((sample) => shifted(sample, mistake)) },
  }));
  return { ...group, members };
}

function shifted(sample: TrainingSample, mistake: Mistake): TrainingSample {
  const { lossMask, logprobs } = sample;
  if (mistake === 'masks') return { ...sample, lossMask: [0, ...lossMask.slice(0, -1)] };
  return { ...sample, logprobs: logprobs === null ? null : [0, ...logprobs.slice(0, -1)] };
}
