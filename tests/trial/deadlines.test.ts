import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  childDeadline,
  group,
  leaf,
  rootDeadline,
  type Deadline,
  type Span,
} from '../../src/trial/deadlines.ts';
import { seededRandom } from '../support/random.ts';

type Random = () => number;

function randomSpan(random: Random, depth: number, name: string): Span {
  if (depth === 0 || random() < 0.3) {
    const own = random() < 0.15 ? null : 1 + random() * 10 ** (random() * 6);
    return leaf(name, own, random() < 0.5 ? undefined : 1 + random() * 1000);
  }
  const count = 1 + Math.floor(random() * 5);
  return group(
    name,
    Array.from({ length: count }, (_, index) => randomSpan(random, depth - 1, `${name}.${index}`)),
  );
}

/** Plays a tree: each leaf takes some share of its limit, often all of it. Answers when it ends; checks every rule on the way. */
function play(deadline: Deadline, nowMs: number, random: Random): number {
  const limit = deadline.endMs - nowMs;
  assert.ok(limit > 0, `${deadline.span.name} got no time`);
  if (deadline.span.children.length === 0) {
    assert.ok(limit <= (deadline.span.ownMs ?? Infinity) + 1e-6, 'longer than its own limit');
    const share = random() < 0.5 ? 1 : random();
    return nowMs + (Number.isFinite(limit) ? limit * share : random() * 1e6);
  }
  let at = nowMs;
  for (const span of deadline.span.children) {
    if (random() < 0.1) continue; // stages may be skipped
    const child = childDeadline(deadline, span.name, at);
    assert.ok(child.startMs >= deadline.startMs);
    if (Number.isFinite(deadline.endMs))
      assert.ok(child.endMs < deadline.endMs, `${span.name} is not strictly inside its parent`);
    assert.ok(
      child.endMs - at >= span.reserveMs * deadline.scale * 0.999 - 1e-6,
      `${span.name} got less than its reserve`,
    );
    at = play(child, at, random);
    assert.ok(at <= child.endMs + 1e-6);
  }
  return at;
}

describe('the deadline tree', () => {
  test('keeps children strictly inside their parents for thousands of budgets', () => {
    for (let seed = 1; seed <= 5_000; seed += 1) {
      const random = seededRandom(seed);
      const root = group('trial', [
        randomSpan(random, 3, 'a'),
        randomSpan(random, 3, 'b'),
        randomSpan(random, 2, 'c'),
      ]);
      const ceilingMs = random() < 0.3 ? null : 10 + random() * 10 ** (1 + random() * 6);
      const startMs = random() * 1e6;
      const deadline = rootDeadline(root, startMs, ceilingMs);
      try {
        const endMs = play(deadline, startMs, random);
        if (ceilingMs !== null) assert.ok(endMs < startMs + ceilingMs, 'over the ceiling');
      } catch (error) {
        assert.fail(`seed ${seed}: ${String(error)}`);
      }
    }
  });

  test('takes from the agent what an early stage used, and never from the verifier', () => {
    const root = group('trial', [
      leaf('start', 600_000, 1_000),
      leaf('agent', 900_000, 1_000),
      leaf('verifier', 600_000),
      leaf('cleanup', 60_000),
    ]);
    const deadline = rootDeadline(root, 0, 1_000_000);
    const quick = childDeadline(deadline, 'agent', 10_000);
    const slow = childDeadline(deadline, 'agent', 300_000);
    assert.ok(quick.isCut && slow.isCut);
    assert.ok(slow.endMs - 300_000 < quick.endMs - 10_000);
    const verifier = childDeadline(deadline, 'verifier', slow.endMs);
    assert.equal(Math.round(verifier.endMs - verifier.startMs), 600_000);
  });

  test('shares a ceiling that is too low for all reserves', () => {
    const root = group('trial', [leaf('agent', 100_000, 1_000), leaf('verifier', 100_000)]);
    const deadline = rootDeadline(root, 0, 10_000);
    const agent = childDeadline(deadline, 'agent', 0);
    const verifier = childDeadline(deadline, 'verifier', agent.endMs);
    assert.ok(agent.endMs > 0);
    assert.ok(verifier.endMs > agent.endMs && verifier.endMs < 10_000);
  });

  test('has no end where neither a part nor the ceiling has one', () => {
    const root = group('trial', [leaf('agent', null), leaf('verifier', 1_000)]);
    const deadline = rootDeadline(root, 5, null);
    assert.equal(childDeadline(deadline, 'agent', 5).endMs, Infinity);
    assert.equal(childDeadline(deadline, 'verifier', 1e9).endMs, 1e9 + 1_000);
  });
});

test('the longest limit still ends at a date', () => {
  const root = rootDeadline(
    group('trial', [leaf('agent', 1e303), leaf('verifier', 1e303)]),
    0,
    null,
  );
  const agent = childDeadline(root, 'agent', 0);
  assert.ok(agent.endMs > 0 && agent.endMs < root.endMs);
  assert.ok(!Number.isNaN(new Date(Date.now() + root.endMs).getTime()));
});
