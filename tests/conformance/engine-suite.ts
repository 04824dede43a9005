/**
 * The conformance suite of the engine port: every client runs the same cases against a `slipway engine` process and prints their list. A case
 * whose capability the client does not declare is declined: the list says so, and the test is that `declines` of the adapter allows it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openEngine } from '../../src/engines/registry.ts';
import type { EngineAdapter, EngineCase } from './engine/adapter.ts';
import { runEngineCase } from './engine/bench.ts';
import { engineCases } from './engine/cases/all.ts';
import { EngineProcess } from './engine/engine-process.ts';

type Result = 'passed' | 'declined' | 'failed';

export function engineSuite(adapter: EngineAdapter): void {
  const results = new Map<string, Result>();
  describe(`engine conformance: ${adapter.name}`, { concurrency: 1 }, () => {
    let server: EngineProcess | null = null;

    before(async () => {
      server = await EngineProcess.start(adapter.dialect);
    });

    test('case ids are unique, and every decline names a capability or a case', async () => {
      const ids = engineCases.map(({ id }) => id);
      assert.deepEqual(ids, [...new Set(ids)]);
      const known = new Set<string>([...ids, ...Object.keys(await capabilitiesOf(adapter))]);
      assert.deepEqual(
        adapter.declines.filter((name) => !known.has(name)),
        [],
      );
    });

    for (const testCase of engineCases)
      test(`${testCase.id}: ${testCase.title}`, async () => {
        results.set(testCase.id, 'failed');
        assert.ok(server, 'the engine did not start');
        results.set(testCase.id, await runCase(testCase, { adapter, server }));
      });

    after(async () => {
      await server?.[Symbol.asyncDispose]();
      print(adapter.name, results);
    });
  });
}

async function capabilitiesOf({ kind }: EngineAdapter) {
  const engine = await openEngine({ kind, baseUrl: 'http://127.0.0.1:1', apiKey: null });
  await engine.close();
  return engine.capabilities;
}

async function runCase(
  testCase: EngineCase,
  { adapter, server }: { readonly adapter: EngineAdapter; readonly server: EngineProcess },
): Promise<Result> {
  const { needs } = testCase;
  if (needs !== undefined) {
    const isDeclared = (await capabilitiesOf(adapter))[needs];
    const mayDecline = adapter.declines.includes(needs);
    assert.ok(isDeclared || mayDecline, `${adapter.name} may not decline ${needs}`);
    assert.ok(!isDeclared || !mayDecline, `${needs} is listed as declined but declared`);
    if (!isDeclared) return 'declined';
  }
  const run = runEngineCase(testCase, { adapter, server });
  if (!adapter.declines.includes(testCase.id)) {
    await run;
    return 'passed';
  }
  await assert.rejects(run, `${testCase.id} is listed as declined but passes`);
  return 'declined';
}

function print(name: string, results: ReadonlyMap<string, Result>): void {
  const count = (wanted: Result): number =>
    [...results.values()].filter((result) => result === wanted).length;
  const lines = [...results].map(([id, result]) => `${name}  ${result.padEnd(8)}  ${id}`);
  const sum = `${results.size} cases, ${count('passed')} passed, ${count('declined')} declined, ${count('failed')} failed`;
  console.log([`engine conformance of ${name}`, ...lines, `${name}: ${sum}`].join('\n'));
}
