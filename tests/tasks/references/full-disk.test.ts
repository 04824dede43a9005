import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { isRolloutError, messageOf } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { GitRepository, under } from '../../fakes/git-repository.ts';
import { RegistryServer } from '../../fakes/registry-server.ts';
import { taskFiles } from '../../fakes/task-archive.ts';
import { taskEntry, Workbench } from './workbench.ts';

/** A cache on a file system of 256 KiB; null where this user may not mount one. */
function smallDisk(dir: string): Disposable | null {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'slipway-test', dir], {
      stdio: 'ignore',
    });
  } catch {
    return null;
  }
  return { [Symbol.dispose]: () => void execFileSync('umount', [dir]) };
}

await test('a full disk is named as such, for packages and for repositories', async (t) => {
  await using registry = await RegistryServer.start();
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make({ registry });
  await mkdir(bench.cacheDir);
  using disk = smallDisk(bench.cacheDir);
  if (disk === null) {
    t.skip('mounting needs root');
    return;
  }
  const noise = Array.from({ length: 60_000 }, (_, index) => Math.sin(index).toString(36)).join('');
  const files = { ...taskFiles('large'), 'environment/noise': noise };
  await registry.publishTask({ org: 'acme', name: 'large', files });
  await repository.commit(under('t', files));
  const entries = [
    taskEntry({ name: 'acme/large' }),
    taskEntry({ git_url: repository.url, path: 't' }),
  ];
  for (const entry of entries) {
    const [failure] = await bench.resolver.settleTasks([entry], { signal: never });
    assert.ok(isRolloutError(failure, 'DISK_FULL'), messageOf(failure));
  }
  assert.deepEqual(bench.clock.sleepsMs, [], 'not tried again');
});

await test('a cache folder that cannot be made names the variable to set', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  await registry.publishTask({ org: 'acme', name: 'hello', files: taskFiles('x') });
  await writeFile(bench.cacheDir, 'a file');
  await chmod(bench.cacheDir, 0o400);
  const entry = taskEntry({ name: 'acme/hello' });
  const [failure] = await bench.resolver.settleTasks([entry], { signal: never });
  assert.ok(isRolloutError(failure, 'CONFIG_INVALID'), messageOf(failure));
  assert.ok(failure.message.includes(join(bench.cacheDir, 'tasks')));
  assert.equal(failure.field, 'XDG_CACHE_HOME');
});
