import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CollectorParts } from '../../../src/collector/collector-parts.ts';
import type { CollectorDriver } from '../../../src/collector/drivers/driver.ts';
import { AsynchronousDriver } from '../../../src/collector/drivers/asynchronous-driver.ts';
import { OneStepAheadDriver } from '../../../src/collector/drivers/one-step-ahead-driver.ts';
import { SynchronousDriver } from '../../../src/collector/drivers/synchronous-driver.ts';
import type { HookState } from '../../../src/collector/abort/abort-receipt.ts';
import { hookCases, runHookCase, type HookCase } from './hook-cases.ts';

const drivers: readonly (readonly [
  name: string,
  open: (parts: CollectorParts) => CollectorDriver,
])[] = [
  ['synchronous', (parts) => new SynchronousDriver(parts, 'run')],
  ['one-step-ahead', (parts) => new OneStepAheadDriver(parts, 'run')],
  ['asynchronous', (parts) => new AsynchronousDriver(parts, 'run')],
];

function named(state: HookState): HookCase {
  const found = hookCases.find((each) => each.state === state);
  assert.ok(found);
  return found;
}

const passes = ['load', 'abort', 'load'];

for (const [name, open] of drivers)
  describe(`the abort of the ${name} driver`, () => {
    for (const each of hookCases)
      it(`goes its way with ${each.title}`, async () => {
        const { batch, receipt, logger, requests, lookups, stopped, close } = await runHookCase(
          each,
          open,
        );
        assert.deepEqual(
          batch.groups.map(({ seed, members }) => [seed.groupIndex, members[0]?.reward]),
          [[1, 0.5]],
        );
        assert.equal(receipt.hook.state, each.state);
        if (each.problem === null) assert.equal(receipt.hook.problem, null);
        else assert.match(receipt.hook.problem ?? '', each.problem);
        const stragglers = receipt.rollouts.filter(({ groupIndex }) => groupIndex !== 1);
        assert.ok(stragglers.length >= 2);
        assert.deepEqual([...new Set(stragglers.map(({ how }) => how))], ['ended']);
        assert.equal(stopped, each.endsStragglers ? 0 : stragglers.length);
        // The order of everything: rollouts, one pass, the hook, passes until nothing is left.
        const aborting = requests
          .slice(requests.indexOf('discover'))
          .filter((request) => !request.startsWith('rollout '));
        const hook = each.onAbort === undefined ? [] : ['hook'];
        assert.deepEqual(aborting, ['discover', 'abort', ...hook, ...passes]);
        assert.equal(lookups, each.plugin === null ? 0 : 1);
        assert.equal(logger.above('debug').length, each.problem === null ? 0 : 1);
        await close();
      });

    it('asks for the same things, one for one, with a plugin that has no abort and without a plugin', async () => {
      const [absent, none] = await Promise.all([
        runHookCase(named('absent'), open),
        runHookCase(named('none'), open),
      ]);
      assert.deepEqual(absent.requests, none.requests);
      await Promise.all([absent.close(), none.close()]);
    });
  });
