/**
 * The turns of a path as one sample: all ids that the engine saw and sampled, in order. What was sampled is trained, what stands between (results of tools, what
 * users say) is observation: mask 0 and log-probability 0. Ends of outputs that the template replaced when the next turn came are not in it.
 */
import type { ReplayTensor } from '../../wire/samples/miles-container.ts';
import type { ChatCodec } from '../codec.ts';
import { replayedTurns, replayTensors, type ReplayedTurn, type ReplayRules } from './replay.ts';
import { refusal } from './session-error.ts';

/** A turn as far as samples are concerned. */
export interface SampledTurn extends Pick<ReplayedTurn, 'replayStart'> {
  readonly seq: number;
  readonly promptEnd: number;
  readonly outputIds: Int32Array;
  readonly logprobs: Float64Array;
  readonly reply: {
    readonly text: string;
    readonly finishReason: string | null;
    readonly weightVersion: string | null;
    readonly cachedTokens: number;
    readonly promptTokens: number;
    readonly latencyS: number | null;
  };
  readonly requestedS: number;
  readonly committedS: number;
}

export type SampleStatus = 'pending' | 'completed' | 'truncated' | 'aborted';

/** One completion in a sample: positions in its response. */
export interface Completion {
  readonly seq: number;
  readonly from: number;
  readonly to: number;
}

export interface MergedSample {
  readonly tokens: Int32Array;
  readonly promptLength: number;
  readonly lossMask: Uint8Array;
  readonly logprobs: Float64Array;
  readonly response: string;
  readonly status: SampleStatus;
  readonly weightVersions: readonly string[];
  readonly cachedTokens: number;
  readonly promptTokens: number;
  readonly completions: readonly Completion[];
  readonly lifecycle: Lifecycle | readonly Lifecycle[];
  readonly routedExperts: ReplayTensor | null;
  readonly indexerTopk: ReplayTensor | null;
}

/** When the engine worked on a turn, in seconds since 1970; `t0` null = it did not say how long. */
export interface Lifecycle {
  readonly t0: number | null;
  readonly t1: number;
  readonly turn: number;
  readonly req_ts: number;
  readonly prev_t1?: number;
}

export interface MergeOptions {
  /** Ids of the whole path. */
  readonly snapshot: Int32Array;
  readonly codec: Pick<ChatCodec, 'decode' | 'maxTrim'>;
  /** Of tokens; null = no limit. */
  readonly maxTokens: number | null;
  readonly replay: ReplayRules;
}

/** A turn with what is left of its output. */
interface KeptTurn {
  readonly turn: SampledTurn;
  readonly length: number;
  readonly status: SampleStatus;
}

/** null = the limit leaves nothing. SESSION_SAMPLES_FAILED for turns that do not make up the snapshot. */
export function mergeTurns(
  turns: readonly SampledTurn[],
  options: MergeOptions,
): MergedSample | null {
  const limited = withinLimit(consumed(turns, options), options.maxTokens);
  const replayed = limited.map(({ turn }) => turn);
  const kept = limited.slice(0, replayedTurns(replayed, options.replay));
  const [first] = kept;
  const last = kept.at(-1);
  if (first === undefined || last === undefined) return null;
  const { codec, snapshot } = options;
  const promptLength = first.turn.promptEnd;
  const end = last.turn.promptEnd + last.length;
  const lossMask = new Uint8Array(end - promptLength);
  const logprobs = new Float64Array(end - promptLength);
  const completions: Completion[] = [];
  let response = '';
  let before = promptLength;
  for (const { turn, length } of kept) {
    const { promptEnd } = turn;
    response += codec.decode(snapshot.subarray(before, promptEnd));
    response += codec.decode(snapshot.subarray(promptEnd, promptEnd + length));
    const from = promptEnd - promptLength;
    lossMask.fill(1, from, from + length);
    logprobs.set(turn.logprobs.subarray(0, length), from);
    completions.push({ seq: turn.seq, from, to: from + length });
    before = promptEnd + length;
  }
  const replies = kept.map(({ turn }) => turn.reply);
  return {
    ...{ promptLength, lossMask, logprobs, response, completions },
    tokens: snapshot.slice(0, end),
    status: last.status,
    weightVersions: replies.flatMap(({ weightVersion }) => weightVersion ?? []),
    cachedTokens: replies.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0),
    promptTokens: replies.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    lifecycle: lifecycleOf(kept),
    ...replayTensors(replayed.slice(0, kept.length), { tokens: end, rules: options.replay }),
  };
}

/** What the snapshot has of each output: less at its end where the next turn's template replaced it, by at most what the family lets go. */
function consumed(
  turns: readonly SampledTurn[],
  { snapshot, codec }: MergeOptions,
): readonly KeptTurn[] {
  let cursor = 0;
  const kept = turns.map((turn, at) => {
    const { outputIds, promptEnd, logprobs, reply } = turn;
    if (logprobs.length !== outputIds.length)
      throw broken(`turn ${at}: ${outputIds.length} ids and ${logprobs.length} log-probabilities`);
    if (at > 0 && promptEnd <= cursor)
      throw broken(`turn ${at}: no token stands between it and the turn before`);
    let length = 0;
    while (length < outputIds.length && outputIds[length] === snapshot[promptEnd + length])
      length += 1;
    const trimmed = outputIds.length - length;
    const allowed = at === turns.length - 1 ? 0 : codec.maxTrim;
    if (trimmed > allowed)
      throw broken(
        `turn ${at}: ${trimmed} trailing tokens are replaced, at most ${allowed} may be`,
      );
    cursor = promptEnd + length;
    return { turn, length, status: statusOf(reply.finishReason) };
  });
  if (turns.length > 0 && cursor !== snapshot.length)
    throw broken(`${cursor} of ${snapshot.length} tokens of the session are accounted for`);
  return kept;
}

/** The first turn that is too long loses the end of its output, or is left out where that is not enough; behind a turn that is not complete comes nothing. */
function withinLimit(turns: readonly KeptTurn[], maxTokens: number | null): readonly KeptTurn[] {
  const kept: KeptTurn[] = [];
  for (const each of turns) {
    const overshoot = each.turn.promptEnd + each.length - (maxTokens ?? Infinity);
    if (overshoot > 0) {
      if (overshoot < each.length)
        kept.push({ ...each, length: each.length - overshoot, status: 'truncated' });
      break;
    }
    kept.push(each);
    if (each.status !== 'completed') break;
  }
  return kept;
}

function statusOf(finishReason: string | null): SampleStatus {
  if (finishReason === 'stop' || finishReason === 'tool_calls') return 'completed';
  if (finishReason === 'length') return 'truncated';
  return finishReason === 'abort' ? 'aborted' : 'pending';
}

function lifecycleOf(kept: readonly KeptTurn[]): Lifecycle | readonly Lifecycle[] {
  const parts = kept.map(({ turn }, at): Lifecycle => {
    const { committedS: t1, requestedS, reply } = turn;
    const before = kept[at - 1]?.turn.committedS;
    return {
      t0: reply.latencyS === null ? null : t1 - reply.latencyS,
      ...{ t1, turn: at, req_ts: requestedS },
      ...(before !== undefined && { prev_t1: before }),
    };
  });
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : parts;
}

const broken = (message: string): Error =>
  refusal('SESSION_SAMPLES_FAILED', `sample assembly failed: ${message}`);
