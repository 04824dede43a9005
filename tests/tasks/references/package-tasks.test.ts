import assert from 'node:assert/strict';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { isRolloutError, RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { Fault } from '../../fakes/registry-fault.ts';
import { RegistryServer } from '../../fakes/registry-server.ts';
import { publishedDigest, tarGz, taskArchive, taskFiles } from '../../fakes/task-archive.ts';
import { taskEntry, Workbench } from './workbench.ts';

const options = { signal: never };
const acme = { org: 'acme', name: 'hello' };
const files = taskFiles('hello');
const digest = publishedDigest(files);

await test('a package is downloaded, checked and kept under its digest', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const row = await registry.publishTask({ ...acme, files });
  const entry = taskEntry({ name: 'acme/hello', source: 'set' });
  const [task] = await bench.resolver.resolveTasks([entry], options);
  const dir = join(bench.cacheDir, 'tasks/packages/acme/hello', digest.slice(7));
  assert.deepEqual(
    [task?.dir, task?.digest, task?.name, task?.source, task?.entry.ref],
    [dir, digest, 'acme/hello', 'set', digest],
  );
  assert.equal(await readFile(join(dir, 'instruction.md'), 'utf8'), files['instruction.md']);
  assert.ok((await stat(join(dir, 'tests/test.sh'))).mode & 0o100);
  assert.match(task!.warnings.join('\n'), /task acme\/hello: the tag latest moves/);
  assert.deepEqual(registry.downloads, [{ task_version_id: row['id'] }]);
});

await test('tag, revision and digest name the same version; what is in the cache is not downloaded again', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  await registry.publishTask({ ...acme, files, tags: ['v1'] });
  await registry.publishTask({ ...acme, files: taskFiles('newer'), tags: ['latest', 'v2'] });
  const entries = ['v1', '1', digest].map((ref) => taskEntry({ name: 'acme/hello', ref }));
  const tasks = await bench.resolver.resolveTasks(entries, options);
  assert.equal(new Set(tasks.map((task) => task.dir)).size, 1);
  assert.deepEqual(
    tasks.flatMap((task) => task.warnings),
    [],
  );
  assert.equal(registry.requests.filter((line) => line.includes('/storage/')).length, 1);
  const before = registry.requests.length;
  await bench.resolver.resolveTasks([taskEntry({ name: 'acme/hello', ref: digest })], options);
  assert.equal(registry.requests.length, before, 'a digest that is here asks nobody');
  await bench.resolver.resolveTasks(
    [taskEntry({ name: 'acme/hello', ref: digest, overwrite: true })],
    options,
  );
  assert.equal(registry.requests.filter((line) => line.includes('/storage/')).length, 2);
});

await test('a withdrawn version is only a warning', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  registry.yank(await registry.publishTask({ ...acme, files, tags: ['v1'] }), 'wrong tests');
  const [task] = await bench.resolver.resolveTasks(
    [taskEntry({ name: 'acme/hello', ref: 'v1' })],
    options,
  );
  assert.match(task!.warnings.join('\n'), /withdrawn by its author: wrong tests/);
});

await test('a package whose author had ignore rules of its own is recognised', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const kept = { ...files, 'environment/__pycache__/x.pyc': 'kept by the author' };
  await registry.publishTask({ ...acme, files: kept });
  const [task] = await bench.resolver.resolveTasks([taskEntry({ name: 'acme/hello' })], options);
  assert.equal(task?.digest, publishedDigest(kept));
});

await test('an archive may hold more than its digest covers', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const archive = await taskArchive({ ...files, 'notes.txt': 'x', 'tests/a.pyc': 'litter' });
  await registry.publishTask({ ...acme, files, archive });
  const [task] = await bench.resolver.resolveTasks([taskEntry({ name: 'acme/hello' })], options);
  assert.equal(task?.digest, digest);
});

async function failureOf(registry: RegistryServer, bench: Workbench, ref = 'latest') {
  const entry = taskEntry({ name: 'acme/hello', ref });
  const [settled] = await bench.resolver.settleTasks([entry], options);
  assert.ok(settled instanceof RolloutError, 'it fails');
  const text = `${settled.describe()} ${settled.detail ?? ''} ${bench.log.join(' ')}`;
  assert.ok(!text.includes(registry.key) && !text.includes(registry.baseUrl), text);
  return settled;
}

await test('content with another digest is refused and leaves nothing in the cache', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  await registry.publishTask({ ...acme, files, archive: await taskArchive(taskFiles('evil')) });
  assert.equal((await failureOf(registry, bench)).code, 'PACKAGE_DIGEST_MISMATCH');
  const root = join(bench.cacheDir, 'tasks');
  assert.deepEqual(await readdir(root), ['.locks']);
});

await test('a registry that answers another digest than the one asked for is refused', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const wanted = `sha256:${'0'.repeat(64)}`;
  const answer = JSON.stringify({ id: 1, archive_path: 'a', content_hash: digest, revision: 1 });
  registry.fail({
    path: 'resolve_task_version',
    times: 1,
    how: { kind: 'body', body: Buffer.from(answer) },
  });
  assert.equal((await failureOf(registry, bench, wanted)).code, 'PACKAGE_DIGEST_MISMATCH');
});

await test('an unsafe archive is refused whatever digest it has', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const archive = await tarGz([{ header: { name: '../../escape' }, content: 'x' }]);
  await registry.publishTask({ ...acme, files, archive });
  assert.equal((await failureOf(registry, bench)).code, 'ARCHIVE_UNSAFE');
  const requests = registry.requests.filter((line) => line.includes('/storage/'));
  assert.equal(requests.length, 1, 'not tried again');
});

await test('what the registry does not know is not found', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  assert.equal((await failureOf(registry, bench)).code, 'PACKAGE_NOT_FOUND');
});

const passing: readonly (readonly [string, Fault['how']])[] = [
  ['a server error', { kind: 'status', status: 503 }],
  ['too many requests', { kind: 'status', status: 429 }],
  ['an expired session', { kind: 'status', status: 401, code: 'PGRST303' }],
  ['a broken connection', { kind: 'reset' }],
  ['a body that breaks off', { kind: 'truncated' }],
  ['a silent server', { kind: 'silent', ms: 3000 }],
];

for (const [what, how] of passing)
  for (const path of ['resolve_task_version', '/storage/'])
    await test(`${what} at ${path} is tried again after growing pauses, and not for ever`, async () => {
      await using registry = await RegistryServer.start();
      await using bench = await Workbench.make({ registry, timeoutMs: 300 });
      await registry.publishTask({ ...acme, files });
      registry.fail({ path, times: 3, how });
      const entry = taskEntry({ name: 'acme/hello' });
      const [task] = await bench.resolver.resolveTasks([entry], options);
      assert.equal(task?.digest, digest);
      assert.deepEqual(bench.clock.sleepsMs, [500, 1000, 2000]);
      await rm(bench.cacheDir, { recursive: true });
      registry.fail({ path, times: 4, how });
      const failure = await failureOf(registry, bench);
      assert.ok(isRolloutError(failure, 'REGISTRY_UNAVAILABLE') && failure.retryable);
    });

const final: readonly (readonly [string, Fault['how']])[] = [
  ['a refused key', { kind: 'status', status: 401 }],
  ['an unknown route', { kind: 'status', status: 404, code: 'PGRST202' }],
  ['an answer that is not JSON', { kind: 'body', body: Buffer.from('<html>') }],
  ['an answer of another form', { kind: 'body', body: Buffer.from('{"id":1}') }],
  [
    'a digest that is none',
    { kind: 'body', body: Buffer.from('{"id":1,"archive_path":"a","content_hash":"../x"}') },
  ],
];

for (const [what, how] of final)
  await test(`${what} is not tried again`, async () => {
    await using registry = await RegistryServer.start();
    await using bench = await Workbench.make({ registry });
    registry.fail({ path: 'resolve_task_version', times: 1, how });
    const failure = await failureOf(registry, bench);
    assert.deepEqual([failure.code, failure.retryable], ['REGISTRY_UNAVAILABLE', false]);
    assert.deepEqual(bench.clock.sleepsMs, []);
  });

await test('a registry that cannot record downloads serves them all the same', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  await registry.publishTask({ ...acme, files });
  registry.fail({ path: 'task_version_download', times: 9, how: { kind: 'reset' } });
  await bench.resolver.resolveTasks([taskEntry({ name: 'acme/hello' })], options);
  assert.deepEqual(registry.downloads, []);
});

await test('without a registry a package names the variables to set, and its neighbours resolve', async () => {
  await using bench = await Workbench.make();
  const entries = [taskEntry({ name: 'acme/hello' }), taskEntry({ path: '.' })];
  const [refused, local] = await bench.resolver.settleTasks(entries, options);
  assert.ok(isRolloutError(refused, 'REGISTRY_NOT_CONFIGURED'));
  assert.match(refused.describe(), /SLIPWAY_REGISTRY_URL or HARBOR_SUPABASE_URL/);
  assert.ok(local !== undefined && !isRolloutError(local));
});

await test('cancelling ends a running download with the reason of the signal', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  await registry.publishTask({ ...acme, files });
  registry.fail({ path: '/storage/', times: 1, how: { kind: 'silent', ms: 60_000 } });
  const stop = new AbortController();
  const entry = taskEntry({ name: 'acme/hello' });
  const work = bench.resolver.resolveTasks([entry], { signal: stop.signal });
  while (!registry.requests.some((line) => line.includes('/storage/')))
    await new Promise((resolve) => setTimeout(resolve, 5));
  const reason = new Error('stopped');
  stop.abort(reason);
  await assert.rejects(work, (error) => error === reason);
});

await test('no more packages are downloaded at once than allowed, and every one is counted as progress', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry, maxDownloads: 3 });
  registry.fail({ path: '/storage/', times: 12, how: { kind: 'silent', ms: 20 } });
  for (let index = 0; index < 12; index += 1)
    await registry.publishTask({ org: 'acme', name: `t${index}`, files: taskFiles(`w${index}`) });
  const entries = Array.from({ length: 12 }, (_, index) => taskEntry({ name: `acme/t${index}` }));
  const seen: number[] = [];
  const onProgress = (done: number, total: number): void => void seen.push(done, total);
  const tasks = await bench.resolver.resolveTasks(entries, { signal: never, onProgress });
  assert.deepEqual(
    tasks.map((task) => task.name),
    entries.map((entry) => entry.name),
  );
  assert.deepEqual(seen.slice(-2), [12, 12]);
  assert.equal(registry.peak, 3);
});
