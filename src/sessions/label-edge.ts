/**
 * How a call relates to those before it. Where it joins is decided by ids alone; this says why, in the order of certainty: what the agent's program says of the
 * call, that it goes on, that it asks the same again, and then what its words tell.
 */
import type { CallEvidence, CallWords } from './call-evidence.ts';
import type { ForestCall } from './forest-call.ts';
import type { Edge, ForestNode } from './forest-node.ts';

export interface Joining {
  readonly call: ForestCall;
  readonly words: CallWords;
  readonly parent: ForestNode | null;
  /** Earlier turns from the same place. */
  readonly siblings: readonly ForestNode[];
  /** The last of them that was asked with the same ids; null = none. */
  readonly twin: ForestNode | null;
  readonly isForeign: boolean;
  /** How many messages of the request the parent stands for, its answer included. */
  readonly knownMessages: number;
}

export function labelEdge(joining: Joining, evidence: CallEvidence): Edge {
  const { call, words, parent, siblings, twin, isForeign } = joining;
  if (call.purpose !== 'turn') return { label: 'side-call', reason: call.purpose, from: null };
  if (isForeign) return { label: 'foreign', reason: 'other-program', from: null };
  const isBesideTwin = twin !== null && isBeside(call, twin);
  if (call.repeats !== null || (twin !== null && !isBesideTwin))
    return { label: 'retry', reason: 'asked-again', from: call.repeats };
  if (isBesideTwin) return besides(twin, parent);

  const { nodes, isAsSampled } = evidence.continued(words);
  const [continued] = nodes;
  const isBroken =
    continued !== undefined && !nodes.some((node) => node === parent || isBefore(node, parent));
  const edit = { label: 'edit', from: continued?.call ?? null } as const;
  if (isBroken && isAsSampled) return { ...edit, reason: 'ids-changed' };
  if (parent !== null && siblings.length === 0)
    return isBroken
      ? { ...edit, reason: 'messages-changed' }
      : { label: 'append', reason: null, from: null };
  if (parent === null && siblings.length === 0)
    return { label: 'opening', reason: null, from: null };
  const byItsWords = byWords(joining, evidence);
  if (byItsWords !== null) return byItsWords;
  return isBroken ? { ...edit, reason: 'messages-changed' } : byPlace(joining);
}

function byWords(joining: Joining, evidence: CallEvidence): Edge | null {
  const { words, parent, siblings, knownMessages } = joining;
  const carrier = evidence.carrier(words, knownMessages);
  const from = carrier?.node.call ?? null;
  const said = words.saidBehind(knownMessages);
  // The last turns may stand behind a summary as they were, and make the request as long as theirs.
  const asked = evidence.takeAskedSummary(said);
  if (asked !== null) return { label: 'compaction', reason: 'summarised', from: asked };
  if (carrier !== null && words.messages.length >= carrier.messages)
    return { label: 'edit', reason: 'messages-changed', from };
  const summary = evidence.takeSummary(said);
  if (summary !== null) return { label: 'compaction', reason: 'summarised', from: summary };
  if (parent === null) {
    const spawner = evidence.instruction(said);
    if (spawner !== null) return { label: 'sub-agent', reason: 'spawned', from: spawner };
  }
  const isRetry = parent !== null && siblings.at(-1)?.children.length === 0;
  const unused = isRetry ? null : evidence.takeUnusedSummary();
  if (unused !== null) return { label: 'compaction', reason: 'summarised', from: unused };
  return carrier === null ? null : { label: 'compaction', reason: 'shortened', from };
}

function byPlace({ call, parent, siblings }: Joining): Edge {
  const last = siblings.at(-1);
  if (parent === null || last === undefined || isBeside(call, last)) return besides(last, parent);
  const from = last.call;
  return last.children.length === 0
    ? { label: 'retry', reason: 'other-suffix', from }
    : { label: 'edit', reason: 'messages-changed', from };
}

/** Whether it was sent while the other was not answered yet: then it stands in nobody's place. */
function isBeside({ time }: ForestCall, other: ForestNode): boolean {
  return time !== null && other.time !== null && other.time.endedMs > time.sentMs;
}

function besides(other: ForestNode | undefined, parent: ForestNode | null): Edge {
  return parent === null || other === undefined
    ? { label: 'sub-agent', reason: 'own-opening', from: null }
    : { label: 'sub-agent', reason: 'forked', from: other.call };
}

/** Whether the path to `later` goes through a node. */
function isBefore(node: ForestNode, later: ForestNode | null): boolean {
  let at = later;
  while (at !== null && at.seq > node.seq) at = at.parent;
  return at === node;
}
