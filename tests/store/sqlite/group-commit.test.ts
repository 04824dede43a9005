import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { GroupCommit } from '../../../src/store/sqlite/group-commit.ts';
import { upgrade } from '../../../src/store/sqlite/migrate.ts';
import { openForWriting } from '../../../src/store/sqlite/open-database.ts';
import { schemaSteps } from '../../../src/store/sqlite/schema.ts';
import { StoreCalls, type Argument, type CallName } from '../../../src/store/sqlite/store-calls.ts';
import type { CallMessage } from '../../../src/store/sqlite/worker-messages.ts';
import { at, delivery, rollout } from '../../conformance/store/bench.ts';
import { temporary } from './opening.ts';

type Call = { [Name in CallName]: readonly [Name, Argument<Name>] }[CallName];

const accept: Call = ['accept', rollout('r')];
const enqueue: Call = [
  'change',
  { change: { id: 'r', from: ['queued'], set: {}, deliveries: [delivery('r')] }, now: at(0) },
];
const begin: Call = [
  'change',
  {
    change: { id: 'r', from: ['queued'], set: { state: 'running' }, isRepeatable: true },
    now: at(0),
  },
];
const note: Call = [
  'note',
  [{ rolloutId: 'r', tenant: 't', type: 'rollout:stage', at: at(0), payload: {} }],
];
const read: Call = ['events', { after: 0, limit: 10 }];
const taken = (controllerReport: string | null): Call => [
  'ended',
  {
    ...{ key: delivery('r').key, state: 'delivered', attempts: 1, error: null, now: at(1) },
    controllerReport,
  },
];
const refused: Call = ['change', { change: { id: 'none', from: [], set: {} }, now: at(0) }];

/** Groups that are run one after the other; how the last one is committed, and how often the log is synced beside commits. */
const cases: readonly {
  readonly title: string;
  readonly groups: readonly (readonly Call[])[];
  readonly mode: 'synced' | 'written';
  readonly syncs: number;
}[] = [
  { title: 'an accepted rollout is synced', groups: [[accept]], mode: 'synced', syncs: 0 },
  {
    title: 'that a rollout runs is only written',
    groups: [[accept], [begin]],
    mode: 'written',
    syncs: 0,
  },
  {
    title: 'one call of a group that needs it syncs all of them',
    groups: [[accept], [note, enqueue, note]],
    mode: 'synced',
    syncs: 0,
  },
  {
    title: 'a callback that was taken is only written',
    groups: [[accept], [enqueue], [taken(null)]],
    mode: 'written',
    syncs: 0,
  },
  {
    title: 'a callback that brought a report is synced',
    groups: [[accept], [enqueue], [taken('{}')]],
    mode: 'synced',
    syncs: 0,
  },
  {
    title: 'events are synced before they are read, once',
    groups: [[accept], [note], [read], [read]],
    mode: 'written',
    syncs: 1,
  },
  {
    title: 'events that are read with what writes them are synced with it',
    groups: [[accept], [note, read], [read]],
    mode: 'synced',
    syncs: 0,
  },
  {
    title: 'a commit of nothing covers nothing, and the log is synced for it',
    groups: [[accept], [note], [refused], [read]],
    mode: 'synced',
    syncs: 1,
  },
];

for (const { title, groups, mode, syncs } of cases)
  test(title, async () => {
    await using folder = await temporary();
    const file = join(folder.path, 'store.sqlite');
    const database = openForWriting(file, null);
    upgrade(database, file, schemaSteps);
    let found = 0;
    const commits = new GroupCommit(database, new StoreCalls(database), () => (found += 1));
    for (const group of groups) {
      const messages = group.map(([name, argument], number): CallMessage => ({
        number,
        name,
        argument,
      }));
      for (const answer of commits.run(messages)) assert.ok(!('fault' in answer), title);
    }
    const setting = Number(database.prepare('PRAGMA synchronous').get()?.['synchronous']);
    database.close();
    assert.equal(setting === 2 ? 'synced' : 'written', mode);
    assert.equal(found, syncs);
  });
