/** What survives: the writer's death, garbage behind the last commit, a full disk. */
import assert from 'node:assert/strict';
import { appendFile, copyFile, mkdir, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { seededRandom } from '../../support/random.ts';
import { Child } from '../file/child.ts';
import { openStore, temporary } from './opening.ts';

const request = JSON.stringify({ text: 'x'.repeat(2_000) });

/** Kills a writer after it told of `lines` rollouts; answers the ids that it told of. */
async function killedWriter(folder: string, lines: number): Promise<string[]> {
  await using child = new Child('../sqlite/store-writer.ts', [folder, request]);
  assert.equal(await child.line(), 'open');
  const told: string[] = [];
  for (let index = 0; index < lines; index += 1) told.push((await child.line()) ?? '');
  await child.kill();
  for (let line = await child.line(); line !== undefined; line = await child.line())
    told.push(line);
  return told;
}

/** Everything that was told is there whole, and the log of events has no gap. */
async function assertKept(folder: string, told: readonly string[]): Promise<void> {
  await using store = await openStore(folder);
  const { live } = await store.recover();
  const kept = new Map(live.map((rollout) => [rollout.id, rollout]));
  for (const id of told) {
    const { state, hasAgentBegun, request: text } = kept.get(id)!;
    assert.deepEqual({ state, hasAgentBegun }, { state: 'running', hasAgentBegun: true });
    assert.equal(text, request);
  }
  const { events, oldest, newest } = await store.events({ after: 0, limit: 1_000_000 });
  assert.deepEqual([oldest, newest], [1, events.length]);
  assert.deepEqual(
    events.map(({ cursor }) => cursor),
    events.map((_event, index) => index + 1),
  );
  const begun = live.filter(({ hasAgentBegun }) => hasAgentBegun).length;
  assert.equal(events.length, live.length + begun, 'a change and its event came together');
}

test('what a killed writer was told to be durable is there, whole, also after garbage or half a frame behind it', async () => {
  const random = seededRandom(7);
  await using folder = await temporary();
  const told: string[] = [];
  for (const [round, tail] of [
    (bytes: Buffer) => bytes,
    () => Buffer.from('garbage that is no frame at all'),
    (bytes: Buffer) => bytes.subarray(0, 24 + 2_000),
  ].entries()) {
    const dataFolder = join(folder.path, `round-${round}`);
    const acknowledged = await killedWriter(dataFolder, 40 + Math.floor(random() * 150));
    const log = join(dataFolder, 'store.sqlite-wal');
    const { size } = await stat(log);
    assert.ok(size > 32, 'the log holds what was committed');
    const file = await open(log, 'r');
    const frame = Buffer.alloc(24 + 4096);
    await file.read(frame, 0, frame.length, 32);
    await file.close();
    // A whole old frame, no frame, and half a frame: none has the checksum that belongs in its place.
    await appendFile(log, tail(frame));
    told.push(...acknowledged);
    await assertKept(dataFolder, acknowledged);
    await assertKept(dataFolder, acknowledged);
  }
  assert.ok(told.length >= 120);
});

test('a half of a copied log gives a prefix of what happened, never a half of a change', async () => {
  await using folder = await temporary();
  const source = join(folder.path, 'source');
  await killedWriter(source, 200);
  const { size } = await stat(join(source, 'store.sqlite-wal'));
  const random = seededRandom(11);
  for (let round = 0; round < 4; round += 1) {
    const target = join(folder.path, `cut-${round}`);
    await mkdir(target);
    await copyFile(join(source, 'store.sqlite'), join(target, 'store.sqlite'));
    await copyFile(join(source, 'store.sqlite-wal'), join(target, 'store.sqlite-wal'));
    const file = await open(join(target, 'store.sqlite-wal'), 'r+');
    // The tables themselves are among the first frames.
    await file.truncate(Math.floor(size * (0.5 + random() / 2)));
    await file.close();
    await assertKept(target, []);
  }
});
