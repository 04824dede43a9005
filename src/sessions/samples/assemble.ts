/**
 * Branches become samples. Every sampled id is trained in one sample at most: where branches share a call it is the one whose last call ended first, all others
 * have it as prompt. The weights of a rollout's samples are their shares of its trained tokens and sum to one.
 */
import type { CallStatus } from '../forest-call.ts';
import type { ForestNode } from '../forest-node.ts';
import type { TokenForest } from '../token-forest.ts';
import {
  branchesOf,
  picked,
  trainedTurns,
  withoutRetries,
  type Branch,
  type BranchPicker,
} from './branches.ts';

export interface AssemblyOptions {
  /** Summaries that the agent made of its own history are trained. Default false. */
  readonly trainsSummaries?: boolean;
  /** Of a sample; null = no limit, which is the default. */
  readonly maxTokens?: number | null;
  /** Default: without retries. */
  readonly pick?: BranchPicker;
}

/** One call inside of a sample. */
export interface SampleSpan {
  readonly node: ForestNode;
  /** Where its prompt goes on from what stood there before, where its output begins and where it ends; positions in the tokens of the sample. */
  readonly begin: number;
  readonly outputBegin: number;
  readonly end: number;
  readonly isTrained: boolean;
}

export interface Sample {
  readonly branch: Branch;
  readonly tokens: Int32Array;
  /** The prompt of the first call; all behind it is the response. */
  readonly promptLength: number;
  readonly spans: readonly SampleSpan[];
  /** Of the response: 0 where nothing was sampled; null = the engine did not say them for a span that is trained. */
  readonly logprobs: Float64Array | null;
  readonly trainedTokens: number;
  readonly status: CallStatus;
  readonly isCut: boolean;
  /** Share of the rollout's trained tokens. */
  readonly weight: number;
}

/** None where nothing is trained. */
export function assembleSamples(
  forest: TokenForest,
  options: AssemblyOptions = {},
): readonly Sample[] {
  const { trainsSummaries = false, maxTokens = null, pick = withoutRetries } = options;
  const isTrained = trainedTurns({ trainsSummaries });
  const chosen = picked(branchesOf(forest.nodes, isTrained), pick);
  const owners = new Map<ForestNode, Branch>();
  for (const branch of chosen.toSorted((a, b) => a.leaf.seq - b.leaf.seq))
    for (const node of branch.path)
      if (isTrained(node) && !owners.has(node)) owners.set(node, branch);

  const samples = chosen
    .map((branch) => {
      const spans = spansOf(branch, {
        maxTokens,
        isTrained: (node) => owners.get(node) === branch,
      });
      return sampleOf(forest, branch, spans);
    })
    .filter((sample) => sample.trainedTokens > 0);
  const total = samples.reduce((sum, { trainedTokens }) => sum + trainedTokens, 0);
  return samples.map((sample) => ({ ...sample, weight: sample.trainedTokens / total }));
}

/** The mask of the response: 1 where a token is trained. */
export function lossMaskOf({ tokens, promptLength, spans }: Sample): Uint8Array {
  const mask = new Uint8Array(tokens.length - promptLength);
  for (const { outputBegin, end, isTrained } of spans)
    if (isTrained) mask.fill(1, outputBegin - promptLength, end - promptLength);
  return mask;
}

interface Cutting {
  readonly maxTokens: number | null;
  readonly isTrained: (node: ForestNode) => boolean;
}

/** A call that is too long loses the end of its output, and all calls behind it; where its output cannot make up for it the call goes as well. */
function spansOf({ path }: Branch, { maxTokens, isTrained }: Cutting): readonly SampleSpan[] {
  const most = maxTokens ?? Infinity;
  const tooLong = path.findIndex(({ end }) => end > most);
  const first = path[tooLong];
  const count = first === undefined ? path.length : tooLong + (first.promptEnd < most ? 1 : 0);
  return path.slice(0, count).map((node, at) => ({
    ...{ node, begin: node.kept, outputBegin: node.promptEnd },
    end: at + 1 < count ? (path[at + 1]?.kept ?? node.end) : Math.min(node.end, most),
    isTrained: isTrained(node),
  }));
}

function sampleOf(forest: TokenForest, branch: Branch, spans: readonly SampleSpan[]): Sample {
  const last = spans.at(-1);
  const path = spans.map(({ node }) => node);
  const promptLength = spans[0]?.outputBegin ?? 0;
  const length = last?.end ?? 0;
  const isTooLong = last !== undefined && last.node.end > length;
  return {
    ...{ branch, tokens: forest.idsOf(path).slice(0, length), promptLength, spans },
    logprobs: logprobsOf(forest, spans, length - promptLength),
    trainedTokens: spans.reduce(
      (sum, { isTrained, outputBegin, end }) => sum + (isTrained ? end - outputBegin : 0),
      0,
    ),
    status: isTooLong ? 'truncated' : (last?.node.status ?? 'aborted'),
    isCut: isTooLong || spans.length < branch.path.length,
    weight: 0,
  };
}

function logprobsOf(
  forest: TokenForest,
  spans: readonly SampleSpan[],
  length: number,
): Float64Array | null {
  const promptLength = spans[0]?.outputBegin ?? 0;
  const all = new Float64Array(length);
  for (const { node, outputBegin, end, isTrained } of spans) {
    const { logprobs } = forest.own(node);
    if (logprobs !== null)
      all.set(logprobs.subarray(0, end - outputBegin), outputBegin - promptLength);
    else if (isTrained) return null;
  }
  return all;
}
