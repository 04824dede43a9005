import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { readVerdict } from '../../src/verifier/verifier-output.ts';

const sane = { skipped: [], exitCode: 0 };

test('a folder, or a file too large to be a verdict, in the place of a reward file is refused by its name', async () => {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'verdict-'));
  try {
    for (const name of ['reward.txt', 'reward.json']) {
      const file = path.join(dir, name);
      const field = `/logs/verifier/${name}`;
      await mkdir(file);
      await assert.rejects(readVerdict(dir, sane), { code: 'REWARD_INVALID', field });
      await rm(file, { recursive: true });
      await writeFile(file, '1');
      await truncate(file, 2 ** 30);
      await assert.rejects(readVerdict(dir, sane), { code: 'REWARD_INVALID', field });
      await rm(file);
    }
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('a folder in the place of the test output hides no verdict and no failure', async () => {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'verdict-'));
  try {
    await mkdir(path.join(dir, 'test-stdout.txt'));
    await assert.rejects(readVerdict(dir, sane), { code: 'REWARD_MISSING' });
    await writeFile(path.join(dir, 'reward.txt'), '0.5');
    assert.deepEqual(await readVerdict(dir, sane), { reward: 0.5 });
  } finally {
    await rm(dir, { recursive: true });
  }
});
