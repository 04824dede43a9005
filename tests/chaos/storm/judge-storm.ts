/** What must be true of groups that were collected while everything around them was killed and stopped. */
import type { CollectedGroupLine } from '../../../src/wire/api/collected-lines.ts';
import type { EngineLogLine } from '../../support/engine-process.ts';

export interface StormEvidence {
  readonly groups: readonly CollectedGroupLine[];
  readonly groupSize: number;
  /** Each death of a collector may let one batch be handed over again. */
  readonly mostRepeated: number;
  readonly sampled: readonly EngineLogLine[];
  /** What was left when all had ended, in words. */
  readonly left: readonly string[];
}

export interface StormVerdict {
  readonly lost: readonly string[];
  readonly leaked: readonly string[];
  readonly inexact: readonly string[];
}

export function judgeStorm(evidence: StormEvidence): StormVerdict {
  return { lost: lostOf(evidence), leaked: evidence.left, inexact: inexactOf(evidence) };
}

/** Rows are drawn in their order and none may be dropped: whatever is missing before the last one was lost. */
function lostOf({ groups, groupSize, mostRepeated }: StormEvidence): readonly string[] {
  const lost: string[] = [];
  const seen = new Map<number, number>();
  for (const { group, members } of groups) {
    seen.set(group, (seen.get(group) ?? 0) + 1);
    const whole = members.filter(({ status, reward }) => status === 'completed' && reward === 0.5);
    if (whole.length !== groupSize) lost.push(`group ${group}: ${whole.length} members are whole`);
  }
  const last = Math.max(-1, ...seen.keys());
  for (let group = 0; group <= last; group += 1)
    if (!seen.has(group)) lost.push(`group ${group} was never handed over`);
  const repeated = groups.length - seen.size;
  if (repeated > mostRepeated) lost.push(`${repeated} groups came more than once`);
  return lost;
}

/** Each sample is one call of the engine, id for id and number for number. */
function inexactOf({ groups, sampled }: StormEvidence): readonly string[] {
  const calls = new Set(
    sampled.map((line) => keyOf(line.prompt_ids, line.output_ids, line.logprobs ?? [])),
  );
  return groups.flatMap(({ members }) =>
    members.flatMap(({ rollout_id: id, samples }) => {
      const [sample, ...more] = samples;
      if (sample === undefined || more.length > 0) return [`${id}: ${samples.length} samples`];
      const at = sample.prompt_length;
      const key = keyOf(
        sample.tokens.slice(0, at),
        sample.tokens.slice(at),
        sample.log_probs ?? [],
      );
      return calls.has(key) ? [] : [`${id}: never sampled like that`];
    }),
  );
}

function keyOf(...numbers: readonly (readonly number[])[]): string {
  return JSON.stringify(numbers);
}
