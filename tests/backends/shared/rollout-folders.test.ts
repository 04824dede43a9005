import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { RolloutFolders } from '../../../src/backends/shared/rollout-folders.ts';

let dir = '';
let folders: RolloutFolders;
beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-folders-'));
  folders = new RolloutFolders(dir, (id) => `of-${id}`);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const make = async (id: string): Promise<void> => {
  await mkdir(path.join(dir, `of-${id}`));
  await writeFile(path.join(dir, `of-${id}`, 'file'), '');
};
const isThere = (id: string): boolean => existsSync(path.join(dir, `of-${id}`));

describe('the folders of rollouts', () => {
  it('go when their rollouts are forgotten, and no others; what is not there is no mistake', async () => {
    for (const id of ['a', 'b', 'c']) await make(id);
    await folders.forget(['a', 'b', 'nothing']);
    assert.deepEqual(['a', 'b', 'c'].map(isThere), [false, false, true]);
  });

  it('stay while an execution has them, and go with its end', async () => {
    await make('a');
    const one = folders.use('a');
    const two = folders.use('a');
    await folders.forget(['a']);
    await one.leave();
    await one.leave();
    assert.equal(isThere('a'), true);
    await two.leave();
    assert.equal(isThere('a'), false);
  });

  it('stay when the id has come again since it was forgotten', async () => {
    await make('a');
    const first = folders.use('a');
    await folders.forget(['a']);
    const second = folders.use('a');
    await first.leave();
    await second.leave();
    assert.equal(isThere('a'), true);
  });

  it('are free for a new execution only when the old ones are gone', async () => {
    await make('a');
    const forgetting = folders.forget(['a']);
    const { isFree } = folders.use('a');
    await isFree;
    assert.equal(isThere('a'), false);
    await forgetting;
  });

  it('are all tried, and one that cannot be removed is told', async () => {
    const broken = new RolloutFolders(dir, (id) => (id === 'bad' ? `of-${id}\0` : `of-${id}`));
    await make('a');
    await assert.rejects(broken.forget(['bad', 'a']), AggregateError);
    assert.equal(isThere('a'), false);
  });
});
