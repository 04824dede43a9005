import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { ServiceFaults } from '../../fakes/sandbox-host/service-faults.ts';
import { DaytonaBench } from './daytona-bench.ts';

test('a create whose answer is lost is found by its name: one sandbox, and it is ours', async () => {
  const faults = new ServiceFaults();
  await using bench = await DaytonaBench.open({ faults });
  const environment = bench.provider().environment(bench.spec());
  faults.plant('lost-answer');
  await environment.start({ signal: never });
  assert.deepEqual(
    bench.service.sandboxes.map(({ name }) => name),
    [environment.name],
  );
  assert.equal(await environment.isAlive(never), true);
  await environment.destroy();
  assert.deepEqual(bench.service.sandboxes, []);
});

test('a start that is aborted while the service makes the sandbox leaves none behind', async () => {
  await using bench = await DaytonaBench.open({
    limits: { liveSandboxes: null, createsPerSecond: null, createMs: 300 },
  });
  const environment = bench.provider().environment(bench.spec());
  const controller = new AbortController();
  const starting = environment.start({ signal: controller.signal });
  while (bench.service.sandboxes.length === 0) await new Promise((done) => setTimeout(done, 5));
  const reason = new Error('not wanted any more');
  controller.abort(reason);
  await assert.rejects(starting, reason);
  await environment.destroy();
  assert.deepEqual(bench.service.sandboxes, []);
});

test('every sandbox has an expiry of the service itself, our labels and those of the user', async () => {
  await using bench = await DaytonaBench.open();
  const provider = bench.provider({ labels: { team: 'rl' } });
  const expiresAt = new Date(Date.now() + 90 * 60_000).toISOString();
  const labels = { storeId: 's', runId: 'r', trial: 't', expiresAt };
  const environment = provider.environment(bench.spec({ labels }));
  await environment.start({ signal: never });
  const [made] = bench.service.sandboxes;
  assert.ok(made);
  assert.equal(made.request.ttlMinutes, 90);
  assert.equal(made.request.autoDeleteInterval, 0);
  assert.deepEqual(made.request.labels, {
    'slipway.expires': expiresAt,
    'slipway.managed': 'true',
    'slipway.name': environment.name,
    'slipway.run': 'r',
    'slipway.store': 's',
    'slipway.trial': 't',
    team: 'rl',
  });
  assert.deepEqual(await provider.list(never), [{ name: environment.name, labels }]);
  await environment.destroy();
});

test('two hundred asks for one image build it once, and so does a second process', async () => {
  await using bench = await DaytonaBench.open();
  const [one, other] = [bench.provider(), bench.provider()];
  const starts = Array.from({ length: 200 }, (_, index) =>
    (index % 2 === 0 ? one : other).environment(bench.spec()).start({ signal: never }),
  );
  await Promise.all(starts);
  assert.equal(bench.service.snapshots.builds, 1);
  assert.equal(bench.service.sandboxes.length, 200);
});

test('a build context is stored once under its hash, signed as object storage wants it', async () => {
  await using bench = await DaytonaBench.open();
  const contextDir = await mkdtemp(join(tmpdir(), 'daytona-context-'));
  try {
    await writeFile(
      join(contextDir, 'Dockerfile'),
      'FROM debian:bookworm-slim\nUSER nobody\nCOPY a /a\n',
    );
    await writeFile(join(contextDir, 'a'), 'content');
    const image = { kind: 'dockerfile', contextDir, contextHash: 'ab12'.padEnd(64, '0') } as const;
    const start = (memoryMb: number): Promise<unknown> =>
      bench
        .provider()
        .environment(
          bench.spec({ image, limits: { cpus: 2, memoryMb, storageMb: null, pids: null } }),
        )
        .start({ signal: never });
    await start(1500);
    await start(4096);
    const puts = bench.service.requests.filter((line) => line.startsWith('PUT /storage/'));
    assert.deepEqual(puts, [
      `PUT /storage/fake-builds/fake-organisation/${image.contextHash}/context.tar`,
    ]);
    const sizes = bench.service.snapshots
      .list()
      .map(({ request }) => [request.cpu, request.memory]);
    assert.deepEqual(sizes, [
      [2, 2],
      [2, 4],
    ]); // resources belong to a snapshot: each pair is one of its own
  } finally {
    await rm(contextDir, { recursive: true, force: true });
  }
});

test('a service that wants fewer creations is ENVIRONMENT_THROTTLED with the wait it asks for', async () => {
  await using bench = await DaytonaBench.open({
    limits: { liveSandboxes: null, createsPerSecond: 1, createMs: 0 },
  });
  const provider = bench.provider();
  await provider.environment(bench.spec()).start({ signal: never });
  const refused = await provider
    .environment(bench.spec())
    .start({ signal: never })
    .catch((error: unknown) => error);
  assert.ok(refused instanceof RolloutError);
  assert.equal(refused.code, 'ENVIRONMENT_THROTTLED');
  assert.equal(refused.retryAfterMs, 1_000);
  assert.equal(bench.service.sandboxes.length, 1);
});

test('a sandbox of somebody else that has the name is never removed', async () => {
  await using bench = await DaytonaBench.open();
  const provider = bench.provider();
  await fetch(`${bench.service.apiUrl}/sandbox`, {
    method: 'POST',
    headers: { authorization: 'Bearer fake-daytona-key' },
    body: JSON.stringify({ name: 'daytona-foreign' }),
  });
  await provider.destroyByName('daytona-foreign');
  assert.deepEqual(await provider.list(never), []);
  assert.deepEqual(
    bench.service.sandboxes.map(({ name }) => name),
    ['daytona-foreign'],
  );
});

const unavailable = { code: 'ENVIRONMENT_UNAVAILABLE' };

test('preflight names missing credentials, refused ones and a quota that is used up', async () => {
  await using bench = await DaytonaBench.open();
  await assert.rejects(bench.provider({ apiKey: null }).preflight(never), {
    ...unavailable,
    field: 'DAYTONA_API_KEY',
  });
  await assert.rejects(bench.provider({ apiKey: 'wrong' }).preflight(never), unavailable);
  const organizationId = 'fake-organisation';
  await bench.provider({ organizationId }).preflight(never);
  bench.service.quota.cpuUsed = bench.service.quota.cpu;
  await assert.rejects(bench.provider({ organizationId }).preflight(never), /used up: cpu/);
});
