import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MergedSample } from '../../../src/sessions/miles/merge-turns.ts';
import { dropRetries, type LeafSample } from '../../../src/sessions/miles/sample-hooks.ts';
import type { TurnNode } from '../../../src/sessions/miles/turn-node.ts';

const node = (seq: number, parent: TurnNode | null, committedS = seq): TurnNode =>
  ({ seq, parent, committedS, depth: (parent?.depth ?? 0) + 1 }) as TurnNode;

const leafOf = (leaf: TurnNode): LeafSample => ({
  ...{ leaf, path: [], sample: {} as MergedSample, metadata: {}, reward: null },
});

function picked(nodes: readonly TurnNode[], leaves: readonly TurnNode[]) {
  const warnings: string[] = [];
  const kept = dropRetries(leaves.map(leafOf), {
    ...{ nodes, agent: null },
    warn: (message) => warnings.push(message),
  });
  return { kept: kept.map(({ leaf }) => leaf.seq), warnings };
}

describe('the picker that drops retries', () => {
  it('warns of a dropped branch that is longer than all that are kept', () => {
    const root = node(0, null);
    const long = node(1, root);
    const longer = node(2, long);
    const asked = node(3, long);
    const other = node(4, null);
    const { kept, warnings } = picked([root, long, longer, asked, other], [longer, other]);
    assert.deepEqual(kept, [4]);
    assert.deepEqual(warnings, ['a branch that was asked again is longer than all that are kept']);
  });

  it('warns where the clock went back between two turns, and goes by the order of commits', () => {
    const root = node(0, null);
    const first = node(1, root, 50);
    const again = node(2, root, 40);
    const { kept, warnings } = picked([root, first, again], [first, again]);
    assert.deepEqual(kept, [2]);
    assert.deepEqual(warnings, ['the clock went back between two turns']);
  });
});
