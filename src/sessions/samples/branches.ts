/** Which ends of a forest become samples. Calls that are not to be trained count for nothing unless one that is goes on from them. */
import { RolloutError } from '../../core/errors.ts';
import { pathTo, type Edge, type ForestNode } from '../forest-node.ts';

export interface Branch {
  readonly leaf: ForestNode;
  /** From the opening on. */
  readonly path: readonly ForestNode[];
  /** What the branch is: the edge of the last call on its path that is no append. */
  readonly edge: Edge;
}

/** Takes some of the branches, the same objects, each once. It must not change them. */
export type BranchPicker = (branches: readonly Branch[]) => readonly Branch[];

export type IsTrained = (node: ForestNode) => boolean;

/** What a rollout trains: the agent's turns, and its summaries where they are wanted. */
export function trainedTurns(options: { readonly trainsSummaries: boolean }): IsTrained {
  return ({ purpose, isForeign, end, promptEnd }) =>
    end > promptEnd &&
    !isForeign &&
    (purpose === 'turn' || (purpose === 'summary' && options.trainsSummaries));
}

/** In the order in which their last calls ended. */
export function branchesOf(nodes: readonly ForestNode[], isTrained: IsTrained): readonly Branch[] {
  const hasTrainedBehind = new Set<ForestNode>();
  const leaves: ForestNode[] = [];
  // A child always ended after its parent.
  for (const node of nodes.toReversed()) {
    const isInner = hasTrainedBehind.has(node);
    if (!isInner && !isTrained(node)) continue;
    if (!isInner) leaves.push(node);
    if (node.parent !== null) hasTrainedBehind.add(node.parent);
  }
  return leaves.reverse().map((leaf) => {
    const path = pathTo(leaf);
    const edge = path.findLast((node) => node.edge.label !== 'append')?.edge ?? leaf.edge;
    return { leaf, path, edge };
  });
}

export const everyBranch: BranchPicker = (branches) => branches;

/**
 * Without the answers that the agent asked for again: a leaf whose sibling came later as its retry, and one in whose place a later call stands. Of the first
 * calls of a conversation only the latter are dropped: asking the same from the beginning is how samples are drawn.
 */
export const withoutRetries: BranchPicker = (branches) => {
  const replaced = new Set<number>();
  /** By the place that they all go on from: when the last retry ended. */
  const retried = new Map<ForestNode, number>();
  for (const node of new Set(branches.flatMap(({ path }) => path))) {
    if (node.repeats !== null) replaced.add(node.repeats);
    if (node.edge.label === 'retry' && node.parent !== null)
      retried.set(node.parent, Math.max(node.seq, retried.get(node.parent) ?? 0));
  }
  return branches.filter(
    ({ leaf: { call, parent, seq } }) =>
      !replaced.has(call) && (parent === null || seq >= (retried.get(parent) ?? 0)),
  );
};

/** SAMPLE_PICKER_INVALID where a picker throws or gives back something that is not some of the branches. */
export function picked(branches: readonly Branch[], pick: BranchPicker): readonly Branch[] {
  let given: unknown;
  try {
    given = pick(branches);
  } catch (error) {
    throw invalid('it threw an error', error);
  }
  if (!Array.isArray(given)) throw invalid('it gave back no list');
  const chosen = given as readonly Branch[];
  const known = new Set(branches);
  if (new Set(chosen).size !== chosen.length) throw invalid('it gave one branch back twice');
  if (!chosen.every((branch) => known.has(branch)))
    throw invalid('it gave back a branch that it was not given');
  return chosen;
}

function invalid(message: string, cause?: unknown): RolloutError {
  return new RolloutError('SAMPLE_PICKER_INVALID', message, {
    phase: 'collect',
    field: 'picker',
    remedy: 'Give back some of the branches that the picker was called with, as they are.',
    ...(cause !== undefined && { cause }),
  });
}
