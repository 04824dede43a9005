import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { contentFiles, contentHash } from '../../src/tasks/content-hash.ts';
import { environmentContentHash } from '../../src/tasks/environment-content-hash.ts';
import { taskChecksum } from '../../src/tasks/task-checksum.ts';
import { taskFolder, without, type FolderFiles } from '../fakes/task-folder.ts';

// The digests below were made from this folder by independent programs: Python with the packages dirhash 0.5.0 and pathspec 1.1.1.
const files: FolderFiles = {
  'task.toml': 'schema_version = "1.4"\n',
  'instruction.md': 'Do it.\n',
  'README.md': 'Read me.\n',
  'notes.txt': 'Not content.\n',
  'environment/Dockerfile': 'FROM debian:bookworm-slim\n',
  'environment/data-1.txt': 'a',
  'environment/data/1.txt': 'b',
  'environment/.DS_Store': 'x',
  'environment/__pycache__/m.pyc': 'x',
  'environment/Keep.PYC': 'kept',
  'tests/test.sh': '#!/bin/bash\n',
  'tests/\u{1f600}.txt': 'face',
  'tests/\uff21.txt': 'wide',
  'tests/link.sh': { linkTo: 'test.sh' },
  'tests/folder': { linkTo: '../environment' },
  'solution/solve.sh': '#!/bin/bash\n',
  'solution/solve.sh~': 'x',
  'steps/.keep': '',
};
const contentDigest = 'sha256:955a91c88bca8bfc794a02f8eed38486ba7a6005a16c9613fbd6768ebe5b9ce0';
const checksum = '7434e0e40c5a6d1b077315eecf0497611ffbb458b4d1bbf5955de1b3157802d1';

describe('the content hash', () => {
  it('is the digest of the files that count, in bytewise order of their paths', async () => {
    await using task = await taskFolder(files);
    assert.equal(await contentHash(task.dir, never), contentDigest);
    assert.deepEqual(await contentFiles(task.dir, never), [
      'README.md',
      'environment/Dockerfile',
      'environment/Keep.PYC',
      'environment/data-1.txt',
      'environment/data/1.txt',
      'instruction.md',
      'solution/solve.sh',
      'steps/.keep',
      'task.toml',
      'tests/link.sh',
      'tests/test.sh',
      'tests/\uff21.txt',
      'tests/\u{1f600}.txt',
    ]);
  });

  it("leaves out what the task's own .gitignore names, and only that", async () => {
    const gitignore = 'data/\n*.txt\n!data-1.txt\n# c\n';
    await using task = await taskFolder({ ...files, '.gitignore': gitignore });
    assert.equal(
      await contentHash(task.dir, never),
      'sha256:267e41d146fdf575b313b140c28fc1cbd08ecba940350ceca40918c1583836be',
    );
  });

  it('does not see litter, files outside the format, or broken links', async () => {
    await using task = await taskFolder({
      ...files,
      'extra.txt': 'x',
      'tests/a.swp': 'x',
      'tests/gone': { linkTo: 'nowhere' },
      'steps/__pycache__/y': 'x',
    });
    assert.equal(await contentHash(task.dir, never), contentDigest);
  });

  it('changes with a byte, with a name, and with a file', async () => {
    const variants = [
      { ...files, 'instruction.md': 'Do it!\n' },
      { ...without(files, 'README.md'), 'trajectory.json': 'Read me.\n' },
      { ...files, 'steps/a': '' },
    ];
    for (const variant of variants) {
      await using task = await taskFolder(variant);
      assert.notEqual(await contentHash(task.dir, never), contentDigest);
    }
  });

  it('does not depend on where the folder is', async () => {
    await using task = await taskFolder(files, 'elsewhere');
    assert.equal(await contentHash(task.dir, never), contentDigest);
  });

  it('and the checksum stop when their signal fires, with its reason', async () => {
    await using task = await taskFolder(files);
    const reason = new RolloutError('CANCELLED', 'stopped', { phase: 'resolve' });
    const controller = new AbortController();
    await writeFile(path.join(task.dir, 'tests', 'large'), Buffer.alloc(32_000_000));
    const hashes = [contentHash, taskChecksum].map((hash) => hash(task.dir, controller.signal));
    setImmediate(() => controller.abort(reason));
    for (const hash of hashes) await assert.rejects(hash, reason);
    await assert.rejects(contentHash(task.dir, AbortSignal.abort(reason)), reason);
  });
});

describe('the task checksum', () => {
  it('is the dirhash of the folder, links followed', async () => {
    await using task = await taskFolder(files);
    assert.equal(await taskChecksum(task.dir, never), checksum);
  });

  it('counts hidden files', async () => {
    const gitignore = 'data/\n*.txt\n!data-1.txt\n# c\n';
    await using task = await taskFolder({ ...files, '.gitignore': gitignore });
    assert.equal(
      await taskChecksum(task.dir, never),
      '075713cb0044f1e1d3a0b034277af8a2f3be1c6f28ffa85a54d3b7b901f4a69c',
    );
  });

  it('does not see empty folders, broken links, or a link back to a folder it lies in', async () => {
    await using task = await taskFolder(files);
    await mkdir(path.join(task.dir, 'empty', 'deep'), { recursive: true });
    await symlink('nowhere', path.join(task.dir, 'broken'));
    await symlink('..', path.join(task.dir, 'empty', 'loop'));
    await symlink('/', path.join(task.dir, 'everything'));
    await symlink('..', path.join(task.dir, 'siblings'));
    await symlink('/proc/self/status', path.join(task.dir, 'changing'));
    await symlink('/proc', path.join(task.dir, 'endless'));
    assert.equal(await taskChecksum(task.dir, never), checksum);
  });
});

describe('the hash of a build context', () => {
  const hash = (dir: string, fallback: string | null = null): Promise<string> =>
    environmentContentHash(dir, { fallback, signal: never });

  it('is the digest of its files with their lengths, without links and litter', async () => {
    await using task = await taskFolder({ ...files, 'environment/.git/HEAD': 'ref' });
    assert.equal(
      await hash(path.join(task.dir, 'environment')),
      '3810089b21afabdea4ed39f51cefc8f0',
    );
    assert.equal(await hash(path.join(task.dir, 'tests')), 'b86addc77bcdd1b45966f83c5aba00d3');
  });

  it('tells where a path ends and its content begins', async () => {
    await using left = await taskFolder({ ab: 'c' });
    await using right = await taskFolder({ a: 'bc' });
    assert.notEqual(await hash(left.dir), await hash(right.dir));
  });

  it('of nothing is that of the image, else of the folder, as long as asked', async () => {
    await using task = await taskFolder({ 'environment/.DS_Store': 'x' });
    const dir = path.join(task.dir, 'environment');
    assert.equal(await hash(dir, 'debian:bookworm-slim'), '12f2bc40491f9f7b029e375c38f2ecef');
    assert.equal(
      await environmentContentHash(dir, { fallback: null, signal: never, digits: 12 }),
      'ba5285161ba6',
    );
    await rm(dir, { recursive: true });
    assert.equal(await hash(dir, 'debian:bookworm-slim'), '12f2bc40491f9f7b029e375c38f2ecef');
  });

  it('reads large files in pieces', async () => {
    await using task = await taskFolder({});
    const zeros = Buffer.alloc(3_000_000);
    await writeFile(path.join(task.dir, 'zeros'), zeros);
    const first = await hash(task.dir);
    zeros[2_999_999] = 1;
    await writeFile(path.join(task.dir, 'zeros'), zeros);
    assert.notEqual(await hash(task.dir), first);
  });
});
