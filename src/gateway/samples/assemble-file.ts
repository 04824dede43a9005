/** The captured calls of one rollout become a file of samples beside them. For a thread of its own: a long rollout takes it a second. */
import { closeSync, openSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { isRolloutError, messageOf } from '../../core/errors.ts';
import { assembleSamples, type Sample } from '../../sessions/samples/assemble.ts';
import { openBranchPicker } from '../../sessions/samples/named-picker.ts';
import { sampleLines } from '../../sessions/samples/sample-lines.ts';
import { noSamples, samplesFile, type RolloutSamples } from '../../wire/rollout/rollout-samples.ts';
import { forestOfCalls } from '../capture/captured-forest.ts';
import { readCalls, type ReadCall } from '../capture/read-calls.ts';
import type { MadeSamples, SamplesTask } from './sample-maker.ts';

type Counted = Pick<
  RolloutSamples,
  'count' | 'tokens' | 'trainedTokens' | 'withoutLogprobs' | 'labels'
>;

/** Never rejects. */
export async function assembleFile(task: SamplesTask): Promise<MadeSamples> {
  try {
    return await assembled(task);
  } catch (error) {
    const code = isRolloutError(error) ? `${error.code}: ` : '';
    const why = `the samples cannot be put together: ${code}${messageOf(error)}`;
    return { samples: noSamples('not-made', why), file: null };
  }
}

async function assembled(task: SamplesTask): Promise<MadeSamples> {
  const { captured, rolloutId, reward, rules, agentCalls } = task;
  const said = { isWhole: false };
  const calls = readCalls(captured, () => (said.isWhole = true));
  const { forest, callsWithoutIds, replay } = await forestOfCalls(callsOfAgent(calls, agentCalls));
  const counts = { calls: forest.nodes.length, callsWithoutIds, link: forest.link };
  if (!said.isWhole)
    return without(noSamples('calls-missing', 'not all of its model calls were kept', counts));
  if (counts.calls === 0)
    return without(
      callsWithoutIds === 0
        ? noSamples('no-calls', 'its agent got no answer of a model', counts)
        : noSamples('no-ids', 'the engine said no ids of any of its calls', counts),
    );
  const samples = assembleSamples(forest, {
    trainsSummaries: rules.trainsSummaries,
    maxTokens: rules.maxTokens,
    pick: await openBranchPicker(rules.picker),
  });
  if (samples.length === 0) {
    const within = rules.maxTokens === null ? '' : ` within max_tokens, ${rules.maxTokens}`;
    const why = `no call whose ids are known is a turn of the agent that is to be trained${within}`;
    return without(noSamples('nothing-sampled', why, counts));
  }
  const file = path.join(path.dirname(captured), samplesFile);
  writeLines(file, sampleLines(forest, samples, { rolloutId, reward, callsWithoutIds, replay }));
  return { samples: { ...sumOf(samples), ...counts, notTrainable: null }, file };
}

async function* callsOfAgent(
  calls: AsyncIterable<ReadCall>,
  count: number | null,
): AsyncGenerator<ReadCall> {
  for await (const call of calls) if (call.call <= (count ?? Infinity)) yield call;
}

/** Under its name when it is whole. */
function writeLines(file: string, lines: Iterable<string>): void {
  const draft = `${file}.partial`;
  const descriptor = openSync(draft, 'w', 0o600);
  try {
    for (const line of lines) {
      const bytes = Buffer.from(line);
      for (let done = 0; done < bytes.length;) done += writeSync(descriptor, bytes, done);
    }
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
}

function without(samples: RolloutSamples): MadeSamples {
  return { samples, file: null };
}

function sumOf(samples: readonly Sample[]): Counted {
  const labels: Record<string, number> = {};
  for (const { branch } of samples)
    labels[branch.edge.label] = (labels[branch.edge.label] ?? 0) + 1;
  return {
    count: samples.length,
    tokens: samples.reduce((sum, { tokens }) => sum + tokens.length, 0),
    trainedTokens: samples.reduce((sum, { trainedTokens }) => sum + trainedTokens, 0),
    withoutLogprobs: samples.filter(({ logprobs }) => logprobs === null).length,
    labels,
  };
}
