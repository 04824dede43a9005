/** A node of a forest: one engine call, which is a checkpoint that later calls may go on from. */
import type { CallPurpose, CallStatus } from './forest-call.ts';
import type { MessageFront } from './call-evidence.ts';
import type { SpilledArrays, TokenArrays } from './token-delta.ts';

/** How a call relates to those before it. */
export type EdgeLabel =
  | 'opening' // the first turn of the rollout
  | 'append' // goes on from a checkpoint
  | 'retry' // stands in the place of an answer that nobody went on from
  | 'edit' // goes on from a history that was changed
  | 'compaction' // goes on from a history that was shortened
  | 'sub-agent' // a conversation of its own beside the one it comes from
  | 'side-call' // an aside of the agent's program
  | 'foreign'; // from another program than the agent's

export type BranchReason =
  | 'asked-again'
  | 'other-suffix'
  | 'ids-changed'
  | 'messages-changed'
  | 'summarised'
  | 'shortened'
  | 'spawned'
  | 'forked'
  | 'own-opening'
  | 'title'
  | 'summary'
  | 'probe'
  | 'count-tokens'
  | 'other-program';

export interface Edge {
  readonly label: EdgeLabel;
  /** Why the call does not simply go on; null for `opening` and `append`. */
  readonly reason: BranchReason | null;
  /** The call that it comes from, where that is not the parent: the history that was compacted, the call that spawned it. */
  readonly from: number | null;
}

export interface ForestNode {
  readonly call: number;
  /** The order in which calls ended, from 0: the only ordering of a forest. */
  readonly seq: number;
  /** null = the call opens a conversation. */
  readonly parent: ForestNode | null;
  readonly children: ForestNode[];
  readonly edge: Edge;
  readonly purpose: CallPurpose;
  readonly status: CallStatus;
  readonly repeats: number | null;
  readonly isForeign: boolean;
  readonly weightVersion: string | null;
  readonly hasLogprobs: boolean;
  /** How many ids of the parent's path stand before this call's own: all, but for what the family's template lets go. */
  readonly kept: number;
  /** Where the output begins on the path, and where it ends. */
  readonly promptEnd: number;
  readonly end: number;
  readonly digest: string;
  /** Of its request; null = its messages are not known. */
  readonly front: MessageFront | null;
  readonly cachedTokens: number | null;
  readonly time: { readonly sentMs: number; readonly endedMs: number } | null;
  /** Own ids, at positions `kept` to `end` of the path. */
  stored: TokenArrays | SpilledArrays;
  /** Of the own ids, for comparing once they are spilled. */
  idsHash: string | null;
}

export function isResident(stored: TokenArrays | SpilledArrays): stored is TokenArrays {
  return !('offset' in stored);
}

/** From the opening on. */
export function pathTo(leaf: ForestNode): readonly ForestNode[] {
  const path: ForestNode[] = [];
  for (let node: ForestNode | null = leaf; node !== null; node = node.parent) path.push(node);
  return path.reverse();
}
