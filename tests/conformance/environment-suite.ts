/**
 * The conformance suite of the environment port: every adapter, the fake included, runs the same cases and prints their list. A case
 * whose capability the adapter does not declare is declined: the list says so, and the test is that `declines` of the adapter allows it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { lowerId } from '../../src/core/ids.ts';
import type { ConformanceAdapter, ConformanceCase } from './environment/adapter.ts';
import { SuiteBench } from './environment/bench.ts';
import { environmentCases } from './environment/cases/all.ts';

export type { ConformanceAdapter, Probes } from './environment/adapter.ts';

type Result = 'passed' | 'declined' | 'failed';

export function environmentSuite(adapter: ConformanceAdapter): void {
  const results = new Map<string, Result>();
  describe(`environment conformance: ${adapter.kind}`, { concurrency: 1 }, () => {
    let bench: SuiteBench | null = null;
    const prefix = `conf-${lowerId(6)}-`;
    let leftBefore: readonly string[] = [];

    before(async () => {
      leftBefore = await adapter.leftovers(prefix);
      bench = await SuiteBench.open(adapter, prefix);
    });

    test('case ids are unique, and every decline names a capability or a case', () => {
      const ids = environmentCases.map(({ id }) => id);
      assert.deepEqual(ids, [...new Set(ids)]);
      const known = new Set<string>([...ids, ...Object.keys(bench!.provider.capabilities)]);
      assert.deepEqual(
        adapter.declines.filter((name) => !known.has(name)),
        [],
      );
    });

    for (const testCase of wantedCases(adapter))
      test(`${testCase.id}: ${testCase.title}`, async () => {
        results.set(testCase.id, 'failed');
        assert.ok(bench, 'the provider did not open');
        results.set(testCase.id, await runCase(testCase, { adapter, bench }));
      });

    test('suite.no-leftovers: nothing of the suite is left on the machine', async () => {
      results.set('suite.no-leftovers', 'failed');
      await bench?.[Symbol.asyncDispose]();
      bench = null;
      const left = await adapter.leftovers(prefix);
      assert.deepEqual(
        left.filter((item) => !leftBefore.includes(item)),
        [],
      );
      results.set('suite.no-leftovers', 'passed');
    });

    after(async () => {
      await bench?.[Symbol.asyncDispose]();
      print(adapter.kind, results);
    });
  });
}

function wantedCases({ only }: ConformanceAdapter): readonly ConformanceCase[] {
  if (only === undefined) return environmentCases;
  return environmentCases.filter(({ id }) =>
    only.some((wanted) => id === wanted || id.startsWith(`${wanted}.`)),
  );
}

async function runCase(
  testCase: ConformanceCase,
  { adapter, bench }: { readonly adapter: ConformanceAdapter; readonly bench: SuiteBench },
): Promise<Result> {
  const { needs } = testCase;
  if (needs !== undefined) {
    const isDeclared = bench.provider.capabilities[needs];
    const mayDecline = adapter.declines.includes(needs);
    assert.ok(isDeclared || mayDecline, `${adapter.kind} may not decline ${needs}`);
    assert.ok(!isDeclared || !mayDecline, `${needs} is listed as declined but declared`);
    if (!isDeclared) return 'declined';
  }
  if (!adapter.declines.includes(testCase.id)) {
    await bench.run(testCase);
    return 'passed';
  }
  await assert.rejects(
    bench.run({ ...testCase, limitMs: 3_000 }),
    `${testCase.id} is listed as declined but passes`,
  );
  return 'declined';
}

function print(kind: string, results: ReadonlyMap<string, Result>): void {
  const count = (wanted: Result): number =>
    [...results.values()].filter((result) => result === wanted).length;
  const lines = [...results].map(([id, result]) => `${kind}  ${result.padEnd(8)}  ${id}`);
  const sum = `${results.size} cases, ${count('passed')} passed, ${count('declined')} declined, ${count('failed')} failed`;
  console.log([`environment conformance of ${kind}`, ...lines, `${kind}: ${sum}`].join('\n'));
}
