import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cleanUp } from '../../src/app/clean-up.ts';
import { never } from '../../src/core/linked-abort.ts';
import { environmentSpec } from '../fakes/environment/environment-spec.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import { AppFixture } from './app-fixture.ts';

test('cleaning up removes what another machine left at a provider, some time after its expiry', async () => {
  await using fixture = await AppFixture.create();
  const provider = Object.assign(new FakeProvider(fixture.machine), { isRemote: true });
  const ports = { ...fixture.ports, resolveProvider: () => Promise.resolve(provider) };
  for (const [name, year] of [
    ['past', 2020],
    ['coming', 2100],
  ] as const) {
    const expiresAt = `${year}-01-01T00:00:00.000Z`;
    const labels = { storeId: 'elsewhere', runId: 'run', trial: 't', expiresAt };
    await provider.environment(environmentSpec(name, { labels })).start({ signal: never });
  }
  const report = await cleanUp({ isDryRun: false, signal: never }, ports);
  const reason = 'of another machine, expired at 2020-01-01T00:00:00.000Z';
  assert.deepEqual(report.removed, [{ name: 'past', provider: 'fake', reason }]);
  assert.deepEqual([...fixture.machine.sandboxes.keys()], ['coming']);
});

test('cleaning up says what it removes and why the rest stays; a dry run touches nothing', async () => {
  await using fixture = await AppFixture.create();
  const journals = await fixture.journals();
  const live = await journals.open('run-live');
  const provider = new FakeProvider(fixture.machine);
  for (const [name, storeId, runId] of [
    ['dead', journals.storeId, 'run-dead'],
    ['living', journals.storeId, 'run-live'],
    ['strange', 'elsewhere', 'run-dead'],
  ] as const) {
    const labels = { storeId, runId, trial: 't', expiresAt: '2100-01-01T00:00:00.000Z' };
    await provider.environment(environmentSpec(name, { labels })).start({ signal: never });
  }
  const expected = {
    removed: [{ name: 'dead', provider: 'fake', reason: 'labelled by the dead run run-dead' }],
    leftAlone: [
      { name: 'living', provider: 'fake', reason: 'its run run-live lives' },
      { name: 'strange', provider: 'fake', reason: 'of another state folder (elsewhere)' },
    ],
    problems: [],
  };
  assert.deepEqual(await cleanUp({ isDryRun: true, signal: never }, fixture.ports), expected);
  assert.equal(fixture.machine.sandboxes.size, 3);
  assert.deepEqual(await cleanUp({ isDryRun: false, signal: never }, fixture.ports), expected);
  assert.deepEqual([...fixture.machine.sandboxes.keys()].sort(), ['living', 'strange']);
  await live.close();
  const after = await cleanUp({ isDryRun: false, signal: never }, fixture.ports);
  assert.deepEqual(
    after.removed.map(({ name }) => name),
    ['living'],
  );
  assert.equal(fixture.openProviders, 0);
});
