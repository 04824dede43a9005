/** Which leaves of a session become samples, and what is done to those: the rules that hold unless others are named. */
import type { MergedSample } from './merge-turns.ts';
import { isObject } from './message-matcher.ts';
import type { TurnNode } from './turn-node.ts';

/** A leaf as a sample. A picker may not change it; a post-processor gives back others. */
export interface LeafSample {
  readonly leaf: TurnNode;
  /** From the root to the leaf: the `seq` of each turn. */
  readonly path: readonly number[];
  readonly sample: MergedSample;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Whatever a trainer calls one, mostly a number; null = nobody gave one. */
  readonly reward: unknown;
}

export interface HookContext {
  /** All turns of the session, in the order of their commits. */
  readonly nodes: readonly TurnNode[];
  /** What the trainer's agent said of its run; null = nothing. */
  readonly agent: Readonly<Record<string, unknown>> | null;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** Gives back some of the samples, the same objects, each once. Synchronous. */
export type SamplePicker = (
  samples: readonly LeafSample[],
  context: HookContext,
) => readonly LeafSample[];

/** Gives back what goes to the trainer. Synchronous. */
export type SamplePostprocessor = (
  samples: readonly LeafSample[],
  context: HookContext,
) => readonly LeafSample[];

/** Leaves that were asked again are dropped: those with a later sibling under the same turn. First turns are not retries of each other. Longest path first. */
export const dropRetries: SamplePicker = (samples, { nodes, warn }) => {
  const newest = new Map<TurnNode, TurnNode>();
  for (const node of nodes) if (node.parent !== null) newest.set(node.parent, node);
  const isRetried = ({ leaf }: LeafSample): boolean =>
    leaf.parent !== null && newest.get(leaf.parent) !== leaf;
  const kept = samples.filter((one) => !isRetried(one));
  const longest = Math.max(0, ...kept.map(({ leaf }) => leaf.depth));
  for (const { leaf } of samples.filter(isRetried)) {
    const later = leaf.parent === null ? undefined : newest.get(leaf.parent);
    if (leaf.depth > longest)
      warn('a branch that was asked again is longer than all that are kept', { node: leaf.seq });
    if (later !== undefined && later.committedS < leaf.committedS)
      warn('the clock went back between two turns', { node: leaf.seq, later: later.seq });
  }
  return kept.toSorted(
    (one, other) => other.leaf.depth - one.leaf.depth || other.leaf.seq - one.leaf.seq,
  );
};

const serverKeys = new Set(['accumulated_token_ids', 'tito_session_mismatch', 'leaf']);

/**
 * A completion that several leaves share is trained in the one that was committed first; in the others it is context. What the agent said goes into the metadata
 * of each, and its reward becomes theirs.
 */
export const defaultPostprocess: SamplePostprocessor = (samples, { agent }) => {
  const owners = new Map<number, LeafSample>();
  for (const one of samples.toSorted((left, right) => left.leaf.seq - right.leaf.seq))
    for (const seq of one.path) if (!owners.has(seq)) owners.set(seq, one);
  const said = Object.entries(agent ?? {}).filter(([name]) => !serverKeys.has(name));
  const reward = agent?.['reward'];
  return samples.map((one) => ({
    ...one,
    sample: withoutShared(one, owners),
    metadata: { ...one.metadata, ...Object.fromEntries(said) },
    reward: reward ?? one.reward,
  }));
};

function withoutShared(one: LeafSample, owners: ReadonlyMap<number, LeafSample>): MergedSample {
  const { sample } = one;
  const lossMask = sample.lossMask.slice();
  for (const { seq, from, to } of sample.completions)
    if (owners.get(seq) !== one) lossMask.fill(0, from, to);
  return { ...sample, lossMask };
}

/** Why what a picker gave back cannot be used; null = it can. */
export function pickProblem(given: readonly LeafSample[], picked: unknown): string | null {
  if (!Array.isArray(picked)) return 'the picker gave back no list';
  const known = new Set<unknown>(given);
  if (!picked.every((one) => known.has(one)))
    return 'the picker gave back a sample that it was not given';
  return new Set(picked).size === picked.length ? null : 'the picker gave back a sample twice';
}

export function isLeafSample(value: unknown): value is LeafSample {
  return isObject(value) && isObject(value['sample']) && isObject(value['metadata']);
}
