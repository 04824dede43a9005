/** Writes the samples of a forest as lines of NDJSON. */
import { createHash } from 'node:crypto';
import { exactJson } from '../../core/exact-json.ts';
import type {
  CallReplay,
  SampleCall,
  SampleLine,
  SamplesEnd,
  SamplesHead,
  SampleSpanLine,
} from '../../wire/samples/sample-lines.ts';
import type { ForestNode } from '../forest-node.ts';
import type { Logprobs } from '../token-delta.ts';
import type { TokenForest } from '../token-forest.ts';
import { lossMaskOf, type Sample, type SampleSpan } from './assemble.ts';

export interface ExportedRollout {
  readonly rolloutId: string | null;
  /** Of the rollout, which each of its samples has; null = nobody gave one. */
  readonly reward: number | null;
  readonly callsWithoutIds: number;
  /** By call, what the engine said beside its ids; absent = nothing. */
  readonly replay?: ReadonlyMap<number, CallReplay>;
}

/** Each with its line break. */
export function* sampleLines(
  forest: TokenForest,
  samples: readonly Sample[],
  rollout: ExportedRollout,
): Generator<string> {
  const hash = createHash('sha256');
  const head: SamplesHead = {
    slipway_samples: 1,
    rollout_id: rollout.rolloutId,
    calls: forest.nodes.map(callLine),
    calls_without_ids: rollout.callsWithoutIds,
    link: forest.link,
  };
  const lines = [
    () => head,
    ...samples.map((sample, at) => () => ({
      ...sampleLine(forest, sample, { at, reward: rollout.reward }),
      ...replayOf(sample, rollout.replay),
    })),
  ];
  for (const make of lines) {
    const line = `${exactJson(make())}\n`;
    hash.update(line);
    yield line;
  }
  const end: SamplesEnd = {
    slipway_samples_end: 1,
    samples: samples.length,
    sha256: hash.digest('hex'),
  };
  yield `${JSON.stringify(end)}\n`;
}

/** The engine was asked for all tokens of a call: that of the last one holds those of the calls before. */
function replayOf(
  { spans }: Sample,
  known: ReadonlyMap<number, CallReplay> = new Map(),
): Pick<SampleLine, 'replay'> {
  const replay = known.get(spans.at(-1)?.node.call ?? 0);
  return replay === undefined ? {} : { replay };
}

function callLine(node: ForestNode): SampleCall {
  const { call, edge, parent, purpose, status, weightVersion, promptEnd, end, digest } = node;
  const { cachedTokens } = node;
  return {
    ...{ call, label: edge.label, reason: edge.reason, from: edge.from },
    ...{ parent: parent?.call ?? null, purpose, status, weight_version: weightVersion },
    ...{ prompt_tokens: promptEnd, output_tokens: end - promptEnd },
    ...(cachedTokens !== null && { cached_tokens: cachedTokens }),
    digest,
  };
}

function sampleLine(
  forest: TokenForest,
  sample: Sample,
  { at, reward }: { readonly at: number; readonly reward: number | null },
): SampleLine {
  const { branch, tokens, promptLength, logprobs, status, isCut, weight } = sample;
  return {
    ...{ sample: at, label: branch.edge.label, reason: branch.edge.reason, status },
    ...{ is_cut: isCut, reward, weight, prompt_length: promptLength, tokens: [...tokens] },
    loss_mask: [...lossMaskOf(sample)] as (0 | 1)[],
    log_probs: logprobs === null ? null : [...logprobs],
    calls: sample.spans.map((span) => spanLine(forest, span, logprobs !== null)),
  };
}

function spanLine(forest: TokenForest, span: SampleSpan, isInSample: boolean): SampleSpanLine {
  const { node, begin, outputBegin, end, isTrained } = span;
  const { ids, logprobs } = forest.own(node);
  const count = end - outputBegin;
  const missing = ids.subarray(ids.length - (node.end - end));
  return {
    ...{ call: node.call, begin, output: outputBegin, end, trained: isTrained },
    ...{ weight_version: node.weightVersion, has_log_probs: logprobs !== null },
    ...(node.end > end && {
      missing: { ids: [...missing], log_probs: listOf(logprobs, count) },
    }),
    ...(!isInSample &&
      logprobs !== null && { log_probs: listOf(logprobs.subarray(0, count), 0) ?? [] }),
  };
}

function listOf(logprobs: Logprobs | null, from: number): number[] | null {
  return logprobs === null ? null : [...logprobs.subarray(from)];
}
