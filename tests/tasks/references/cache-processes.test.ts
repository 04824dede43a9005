import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { contentHash } from '../../../src/tasks/content-hash.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { GitRepository, under } from '../../fakes/git-repository.ts';
import { RegistryServer } from '../../fakes/registry-server.ts';
import { publishedDigest, taskFiles } from '../../fakes/task-archive.ts';
import { taskEntry, Workbench } from './workbench.ts';

const script = fileURLToPath(new URL('fetch-once.ts', import.meta.url));

function fetchOnce(
  bench: Workbench,
  registry: RegistryServer | null,
  entry: Readonly<Record<string, unknown>>,
  path = process.env['PATH'] ?? '',
) {
  const args = [
    bench.cacheDir,
    registry?.baseUrl ?? '-',
    registry?.key ?? '-',
    JSON.stringify(entry),
  ];
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PATH: path },
  });
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const dir = text(child.stdout).then((output) => output.trim());
  return { child, ended, dir };
}

const files = taskFiles('raced');
const digest = publishedDigest(files);

await test('processes that want the same package download it once and see it whole', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make();
  await registry.publishTask({ org: 'acme', name: 'hello', files });
  registry.fail({ path: '/storage/', times: 9, how: { kind: 'silent', ms: 300 } });
  const racers = [1, 2, 3].map(() => fetchOnce(bench, registry, { name: 'acme/hello' }));
  const codes = await Promise.all(racers.map(({ ended }) => ended));
  assert.deepEqual(codes, [0, 0, 0]);
  const dirs = new Set(await Promise.all(racers.map(({ dir }) => dir)));
  assert.equal(dirs.size, 1);
  assert.equal(await contentHash([...dirs][0]!, never), digest);
  assert.equal(registry.requests.filter((line) => line.includes('/storage/')).length, 1);
  assert.deepEqual((await readdir(join(bench.cacheDir, 'tasks'))).sort(), ['.locks', 'packages']);
});

await test('a process killed in the middle of a download leaves nothing that is used, and the next one cleans up', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  // Large enough that half of its archive already unpacks to files.
  const noise = Array.from({ length: 40_000 }, (_, index) => Math.sin(index).toString(36)).join('');
  const large = { ...files, 'environment/noise': noise };
  await registry.publishTask({ org: 'acme', name: 'hello', files: large });
  registry.fail({ path: '/storage/', times: 1, how: { kind: 'stalled', ms: 60_000 } });
  const victim = fetchOnce(bench, registry, { name: 'acme/hello' });
  const root = join(bench.cacheDir, 'tasks');
  let unfinished: readonly string[] = [];
  while (!unfinished.some((name) => name.endsWith('task.toml'))) {
    await delay(20);
    unfinished = await readdir(root, { recursive: true }).catch(() => []);
  }
  victim.child.kill('SIGKILL');
  await victim.ended;
  const before = (await readdir(root)).sort();
  assert.ok(
    before.some((name) => name.startsWith('.unfinished-')),
    before.join(),
  );
  assert.ok(!before.includes('packages'));
  const [task] = await bench.resolver.resolveTasks([taskEntry({ name: 'acme/hello' })], {
    signal: never,
  });
  assert.equal(await contentHash(task!.dir, never), publishedDigest(large));
  assert.deepEqual((await readdir(root)).sort(), ['.locks', 'packages']);
});

await test('processes that want the same repository clone it once; a killed clone is not used', async () => {
  await using repository = await GitRepository.make();
  const commit = await repository.commit(under('t', files));
  await using bench = await Workbench.make();
  const entry = { git_url: repository.url, git_commit_id: commit, path: 't' };
  const bin = join(bench.dir, 'bin');
  await mkdir(bin);
  const calls = join(bench.dir, 'calls');
  await bench.script(
    'bin/git',
    `#!/bin/sh\nexport PATH=\${PATH#*:}\nfor word; do if [ "$word" = checkout ]; then echo checkout >> '${calls}'; [ -e '${calls}.stall' ] && sleep 20; fi; done\nexec git "$@"\n`,
  );
  const path = `${bin}:${process.env['PATH'] ?? ''}`;
  await writeFile(`${calls}.stall`, '');
  const victim = fetchOnce(bench, null, entry, path);
  while (!(await readdir(bench.dir)).includes('calls')) await delay(20);
  victim.child.kill('SIGKILL');
  await victim.ended;
  await rm(`${calls}.stall`);
  await rm(calls);
  const racers = [1, 2, 3].map(() => fetchOnce(bench, null, entry, path));
  assert.deepEqual(await Promise.all(racers.map(({ ended }) => ended)), [0, 0, 0]);
  const dir = await racers[0]!.dir;
  assert.equal(await contentHash(dir, never), digest);
  assert.equal(await readFile(calls, 'utf8'), 'checkout\n');
  const left = await readdir(join(bench.cacheDir, 'tasks'));
  assert.ok(!left.some((name) => name.startsWith('.unfinished-')), left.join());
});
