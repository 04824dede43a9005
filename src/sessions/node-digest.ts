/**
 * The hash chain of a rollout. Each call has a digest over everything that an engine saw and said in it, by way of its parent's: the parent's digest, how many of
 * the parent's ids it keeps, its new prompt ids, its sampled ids, their log-probabilities as 64-bit floats, and the weight version. A change anywhere on a path
 * changes the digests of all calls behind it. The links join the calls in the order in which they ended, so that none can be left out.
 */
import { createHash } from 'node:crypto';
import { bytesOf, type Logprobs } from './token-delta.ts';

export interface DigestedCall {
  /** Of the parent, in hex; null = the call opens a conversation. */
  readonly parent: string | null;
  readonly kept: number;
  readonly promptIds: Int32Array;
  readonly outputIds: Int32Array;
  readonly logprobs: Logprobs | null;
  readonly weightVersion: string | null;
}

export function callDigest(call: DigestedCall): string {
  const { parent, kept, promptIds, outputIds, logprobs, weightVersion } = call;
  const head = JSON.stringify([
    'slipway call 1',
    parent,
    kept,
    promptIds.length,
    outputIds.length,
    logprobs?.length ?? null,
    weightVersion,
  ]);
  const hash = createHash('sha256').update(head).update('\n');
  hash.update(bytesOf(promptIds)).update(bytesOf(outputIds));
  if (logprobs !== null)
    hash.update(bytesOf(logprobs instanceof Float64Array ? logprobs : Float64Array.from(logprobs)));
  return hash.digest('hex');
}

/** `link` null = the first of its chain. */
export function nextLink(link: string | null, digest: string): string {
  return createHash('sha256')
    .update(`${link ?? ''}\n${digest}\n`)
    .digest('hex');
}
