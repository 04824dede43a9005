/** Collections of a real server, over HTTP as a trainer asks for them. */
import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import type { CollectedBatchLine, CollectedGroupLine } from '../../src/wire/api/collected-lines.ts';
import { CollectionClient } from './collection-client.ts';
import { ServeFixture } from './serve-fixture.ts';

const operator = 'the-key-of-the-operator';
const blue = 'the-key-of-blue-tenant';

const row = (does: Readonly<Record<string, unknown>> = {}) => ({
  ...{ prompt: 'hello', label: 'yes', metadata: { null: does } },
});

/** Two groups of two for a batch; `collector` more. */
const wanted = (rows: readonly unknown[], more: Readonly<Record<string, unknown>> = {}) => ({
  dataset: { rows },
  rollouts: { train: false },
  collector: { group_size: 2, batch_groups: 2, start_groups: 3 },
  ...more,
});

const hour = { duration_ms: 3_600_000 };

describe('collections', { timeout: 120_000 }, () => {
  it('hand over groups as lines, wait for acknowledgements, and stop with a receipt', async () => {
    await using fixture = await ServeFixture.create();
    const { controlUrl } = await fixture.start();
    const client = new CollectionClient(controlUrl);
    // Of every batch the third group runs on, until the batch is full.
    const rows = Array.from({ length: 9 }, (_, at) => row(at % 3 === 2 ? hour : { reward: at }));
    const { id, state } = await client.create(wanted(rows));
    assert.equal(state, 'collecting');
    await client.change(id, 'weight-version', { version: 7 });

    const first = await client.lines(id, { until: 'batch' });
    const groups = first.filter(({ type }) => type === 'group') as unknown as CollectedGroupLine[];
    assert.deepEqual(
      groups.map(({ row: index, members }) => [index, members.map(({ reward }) => reward)]),
      [
        [0, [0, 0]],
        [1, [1, 1]],
      ],
    );
    const batch = first.at(-1) as unknown as CollectedBatchLine;
    assert.equal(batch.started.groups, 3);
    assert.deepEqual(batch.abort?.by, { ended: 2 });
    assert.deepEqual(
      first.map(({ cursor }) => cursor),
      [1, 2, 3],
    );

    // Whoever comes back gets what it has not seen, and nothing new before it has said what it has.
    assert.deepEqual(await client.lines(id, { after: 1, until: 'batch' }), first.slice(1));
    const held = await client.look(id);
    assert.deepEqual([held.cursor, held.groups_unacknowledged], [3, 2]);
    assert.equal(held.position.open.length, 0);

    await client.change(id, 'pause');
    const acked = await client.change(id, 'ack', { through: 3 });
    assert.deepEqual([acked.acknowledged, acked.groups_unacknowledged], [3, 0]);
    assert.equal(acked.state, 'paused');
    assert.deepEqual(acked.position.dataset, { epoch: 0, offset: 3 });
    assert.deepEqual(
      acked.position.open.map(({ row: index }) => index),
      [2],
    );
    await client.change(id, 'resume');
    const second = await client.lines(id, { until: 'batch' });
    assert.deepEqual(
      second.map(({ cursor }) => cursor),
      [4, 5, 6],
    );
    assert.equal((second[0] as unknown as CollectedGroupLine).oldest_version, 7);

    const stopped = await client.change(id, 'stop');
    assert.equal(stopped.state, 'stopped');
    const left = await client.lines(id, { after: 6 });
    assert.deepEqual(
      left.map(({ type, state: end }) => [type, end]),
      [['end', 'stopped']],
    );
    assert.equal(await client.status('POST', `/${id}/pause`), 409);
  });

  it('stop what runs, with a receipt for every rollout, also when the server does', async () => {
    await using fixture = await ServeFixture.create();
    const server = await fixture.start();
    const client = new CollectionClient(server.controlUrl);
    const busy = wanted([row(hour), row(hour), row(hour)]);
    const stopped = await client.create(busy);
    await client.running(6);
    const { receipt } = await client.change(stopped.id, 'stop');
    assert.equal(receipt?.reason, 'stopped');
    assert.equal(receipt.is_complete, true);
    assert.deepEqual(
      receipt.rollouts.map(({ how, is_gone: isGone }) => [how, isGone]),
      Array.from({ length: 6 }, () => ['ended', true]),
    );
    const { id } = await client.create(busy);
    await client.running(6);
    const reading = client.lines(id);
    await server.stop(never);
    assert.deepEqual(
      (await reading).map(({ type, state }) => [type, state]),
      [['end', 'stopped']],
    );
  });

  it('end with their rows, and go on from a position', async () => {
    await using fixture = await ServeFixture.create();
    const { controlUrl } = await fixture.start();
    const client = new CollectionClient(controlUrl);
    const rows = Array.from({ length: 5 }, (_, at) => row({ reward: at }));
    const { id } = await client.create(wanted(rows, { batches: 1 }));
    const lines = await client.lines(id);
    assert.deepEqual(
      lines.map(({ type }) => type),
      ['group', 'group', 'batch', 'end'],
    );
    // Nothing of the first batch is acknowledged: the next collection hands it over again.
    const { position, state } = await client.look(id);
    assert.equal(state, 'ended');
    const again = await client.create(wanted(rows, { position, ahead_groups: 9 }));
    const all = await client.lines(again.id);
    const indexes = all.flatMap((line) =>
      line.type === 'group' ? [(line as unknown as CollectedGroupLine).row] : [],
    );
    assert.deepEqual(
      indexes.toSorted((a, b) => a - b),
      [0, 1, 2, 3, 4],
    );
    assert.deepEqual(all.at(-1), { cursor: all.length, type: 'end', state: 'ended', error: null });
  });

  it('are driven as asked: a pause lets weights change, and what is older than the limit is not handed over', async () => {
    await using fixture = await ServeFixture.create();
    const { controlUrl } = await fixture.start();
    const client = new CollectionClient(controlUrl);
    const rows = Array.from({ length: 8 }, (_, at) => row({ reward: at }));
    const drivers = [
      { driver: 'one-step-ahead' },
      { driver: 'asynchronous', asynchronous: { buffer_groups: 4, max_staleness: 0 } },
    ];
    for (const driven of drivers) {
      const { id } = await client.create(wanted(rows, { ...driven, weight_version: 0 }));
      const first = await client.lines(id, { until: 'batch' });
      const paused = await client.change(id, 'pause');
      assert.equal(paused.state, 'paused');
      await client.change(id, 'weight-version', { version: 1 });
      await client.change(id, 'resume');
      const { cursor } = await client.change(id, 'ack', { through: first.at(-1)!.cursor });
      assert.ok(cursor >= first.at(-1)!.cursor);
      const second = await client.lines(id, { until: 'batch' });
      const versions = second.flatMap((line) =>
        line.type === 'group' ? [(line as unknown as CollectedGroupLine).oldest_version] : [],
      );
      // One step ahead: of the weights before. Asynchronous: of the new ones alone.
      const version = driven.driver === 'asynchronous' ? 1 : 0;
      assert.deepEqual(versions, [version, version], driven.driver);
      const { state } = await client.change(id, 'stop');
      assert.equal(state, 'stopped');
    }
    const wrong = { driver: 'asynchronous', asynchronous: { colour: 1 } };
    assert.equal(await client.status('POST', '', wanted(rows, wrong)), 400);
  });

  it('are those of their caller, whose rollouts they run, also where callbacks may not go to this machine', async () => {
    await using fixture = await ServeFixture.create({ OPERATOR: operator, BLUE: blue });
    const folder = path.join(fixture.root, 'datasets');
    await mkdir(folder);
    await writeFile(path.join(folder, 'rows.jsonl'), `${JSON.stringify(row({ reward: 0.5 }))}\n`);
    await writeFile(path.join(fixture.root, 'secret.jsonl'), `${JSON.stringify(row())}\n`);
    await symlink(path.join(fixture.root, 'secret.jsonl'), path.join(folder, 'link.jsonl'));
    const file = path.join(fixture.root, 'slipway.toml');
    await writeFile(
      file,
      '[keys]\ncontrol = ["env:OPERATOR"]\n[tenants.blue]\nkey = ["env:BLUE"]\n[collections]\ndir = "datasets"\n[callbacks]\nprivate_addresses = "deny"\n',
    );
    const { controlUrl } = await fixture.start({ '--config': file });
    const mine = new CollectionClient(controlUrl, blue);
    const theirs = new CollectionClient(controlUrl, operator);

    const { id } = await mine.create(wanted([row({ reward: 0.25 })], { batches: 1 }));
    const lines = await mine.lines(id);
    assert.deepEqual(
      lines.map(({ type }) => type),
      ['group', 'batch', 'end'],
    );
    const [group] = lines as unknown as [CollectedGroupLine];
    const rollout = group.members[0]!.rollout_id;
    assert.equal(await mine.rolloutStatus(rollout), 'success');
    assert.equal(await new CollectionClient(controlUrl).status('GET', ''), 401);

    const fromFile = (name: string) => ({ ...wanted([], { batches: 1 }), dataset: { file: name } });
    const other = await theirs.create(fromFile('rows.jsonl@[0:1]'));
    assert.equal(await mine.status('GET', `/${other.id}`), 404);
    assert.equal(await theirs.status('GET', `/${id}`), 200);
    for (const name of ['link.jsonl', '../secret.jsonl', path.join(fixture.root, 'secret.jsonl')])
      assert.equal(await theirs.status('POST', '', fromFile(name)), 400, name);
    assert.equal(await mine.status('POST', '', fromFile('rows.jsonl')), 403);
    const engines = { urls: ['http://127.0.0.1:9'] };
    assert.equal(await mine.status('POST', '', wanted([row()], { engines })), 403);
    assert.equal(await theirs.status('POST', '', wanted([row()], { engines })), 422);
    assert.equal((await theirs.lines(other.id)).at(-1)?.['state'], 'ended');
  });
});
