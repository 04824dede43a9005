import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { isRolloutError, type ErrorCode } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { unpackArchive, type UnpackLimits } from '../../../src/tasks/references/unpack-archive.ts';
import { sha256, tarGz, type ArchiveEntry } from '../../fakes/task-archive.ts';

const roomy: UnpackLimits = { packedBytes: 1 << 20, unpackedBytes: 1 << 20, entries: 100 };

class Target implements AsyncDisposable {
  readonly root: string;
  readonly dir: string;

  private constructor(root: string) {
    this.root = root;
    this.dir = join(root, 'in');
  }

  static async make(): Promise<Target> {
    const target = new Target(await mkdtemp(join(tmpdir(), 'slipway-unpack-')));
    await mkdir(target.dir);
    return target;
  }

  unpack(archive: Uint8Array, limits = roomy) {
    async function* chunks() {
      for (let at = 0; at < archive.length; at += 1000) yield archive.subarray(at, at + 1000);
    }
    return unpackArchive(chunks(), { dir: this.dir, limits, signal: never });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.root, { recursive: true, force: true });
  }
}

await test('files, folders, links and the executable bit arrive, with the digest of every file', async () => {
  await using target = await Target.make();
  const digests = await target.unpack(
    await tarGz([
      { header: { name: './', type: 'directory' } },
      { header: { name: './a/run.sh', mode: 0o4777 }, content: 'run' },
      { header: { name: 'b/plain', mode: 0o666 }, content: 'plain' },
      { header: { name: 'b/hard', type: 'link', linkname: 'b/plain' } },
      { header: { name: 'b/soft', type: 'symlink', linkname: '../a/run.sh' } },
      { header: { name: `long/${'x'.repeat(150)}/y` }, content: 'long' },
      { header: { name: 'empty', type: 'directory' } },
    ]),
  );
  assert.equal(digests.get('a/run.sh'), sha256('run'));
  assert.equal(digests.get('b/hard'), sha256('plain'));
  assert.equal(digests.size, 4);
  assert.equal((await lstat(join(target.dir, 'a/run.sh'))).mode & 0o7777, 0o755);
  assert.equal((await lstat(join(target.dir, 'b/plain'))).mode & 0o7777, 0o644);
  assert.equal(await readlink(join(target.dir, 'b/soft')), '../a/run.sh');
  assert.equal(await readFile(join(target.dir, 'b/soft'), 'utf8'), 'run');
  assert.deepEqual(await readdir(join(target.dir, 'empty')), []);
});

const file = (name: string, content = 'x'): ArchiveEntry => ({ header: { name }, content });
const soft = (name: string, linkname: string): ArchiveEntry => ({
  header: { name, type: 'symlink', linkname },
});

const unsafe: readonly (readonly [string, readonly ArchiveEntry[]])[] = [
  ['a name above the folder', [file('../escape')]],
  ['a name that leaves in the middle', [file('a/../../escape')]],
  ['an absolute name', [file('/tmp/slipway-escape')]],
  ['a name with a backslash', [file('..\\escape')]],
  ['a link to an absolute path', [soft('a', '/etc/passwd')]],
  ['a link above the folder', [soft('a/b', '../../escape')]],
  ['a link that goes down and up again', [soft('a', 'b/../../escape')]],
  ['a file written through a link', [soft('a', '.'), file('a/b')]],
  ['a link made through a link', [soft('a/b/c', '../..'), soft('a/b/c/d', '../../..')]],
  [
    'a hard link to a file outside',
    [{ header: { name: 'a', type: 'link', linkname: '/etc/passwd' } }],
  ],
  [
    'a hard link through a link',
    [soft('a', 'b'), { header: { name: 'c', type: 'link', linkname: 'a' } }],
  ],
  ['a name that occurs twice', [file('a'), file('a')]],
  ['a name that is a file and a folder', [file('a'), file('a/b')]],
  ['a device', [{ header: { name: 'a', type: 'character-device', devmajor: 1, devminor: 3 } }]],
  ['a named pipe', [{ header: { name: 'a', type: 'fifo' } }]],
  ['too many entries', Array.from({ length: 101 }, (_, index) => file(`f${index}`))],
  ['too many bytes', [file('a', 'x'.repeat(1 << 20))]],
];

for (const [what, entries] of unsafe)
  await test(`${what} is refused and nothing is written outside the folder`, async () => {
    await using target = await Target.make();
    const archive = await tarGz(entries);
    await assert.rejects(target.unpack(archive), (error) =>
      isRolloutError(error, 'ARCHIVE_UNSAFE'),
    );
    assert.deepEqual(await readdir(target.root), ['in']);
    await assert.rejects(lstat('/tmp/slipway-escape'), { code: 'ENOENT' });
  });

await test('a bomb is stopped while it unpacks', async () => {
  await using target = await Target.make();
  const bomb = await tarGz([file('zeros', '0'.repeat(64 << 20))]);
  assert.ok(bomb.length < roomy.packedBytes);
  await assert.rejects(target.unpack(bomb), (error) => isRolloutError(error, 'ARCHIVE_UNSAFE'));
  const written = await lstat(join(target.dir, 'zeros')).catch(() => null);
  assert.ok((written?.size ?? 0) <= roomy.unpackedBytes);
});

await test('an archive that is larger than allowed is not read to its end', async () => {
  await using target = await Target.make();
  const limits = { ...roomy, packedBytes: 10 };
  const archive = await tarGz([file('a')]);
  await assert.rejects(target.unpack(archive, limits), (error) =>
    isRolloutError(error, 'ARCHIVE_UNSAFE'),
  );
});

await test('a stream that breaks off or is no archive is a passing fault', async () => {
  const whole = await tarGz([file('a', 'y'.repeat(5000)), file('b')]);
  const broken: readonly Uint8Array[] = [
    whole.subarray(0, whole.length - 9),
    Buffer.from('<html>not an archive</html>'),
    gzipSync(Buffer.from('z'.repeat(2000))),
    new Uint8Array(0),
  ];
  for (const archive of broken) {
    await using target = await Target.make();
    const code: ErrorCode = 'REGISTRY_UNAVAILABLE';
    await assert.rejects(
      target.unpack(archive),
      (error) => isRolloutError(error, code) && error.retryable,
    );
  }
});
