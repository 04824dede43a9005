import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { EnvironmentSpec } from '../../../src/environments/environment.ts';
import { WarmPool } from '../../../src/environments/shared/warm-pool.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';

function poolOf(t: TestContext, { size = 2, idleMs = 60_000 } = {}) {
  const machine = new FakeMachine();
  const pool = new WarmPool(new FakeProvider(machine), {
    ...{ size, idleMs, clock: systemClock, logger: silentLogger },
  });
  t.after(() => pool.close());
  return { machine, pool };
}

async function* inOrder(...specs: readonly EnvironmentSpec[]): AsyncGenerator<EnvironmentSpec> {
  for (const spec of specs) {
    await systemClock.sleep(0, never);
    yield spec;
  }
}

async function until(isSo: () => boolean): Promise<void> {
  for (let n = 0; n < 400 && !isSo(); n += 1) await systemClock.sleep(5, never);
  assert.ok(isSo());
}

const debian = (name: string): EnvironmentSpec => environmentSpec(name);
const node = (name: string): EnvironmentSpec =>
  environmentSpec(name, { image: { kind: 'prebuilt', reference: 'node:20-slim' } });

test('the pool is filled in the order of the trials, and goes on as they take', async (t) => {
  const { machine, pool } = poolOf(t);
  const images = (): string[] =>
    [...machine.sandboxes.values()].map(({ spec: { image } }) =>
      image.kind === 'prebuilt' ? image.reference : '',
    );
  pool.fill(inOrder(debian('1'), node('2'), debian('3'), debian('4')));
  await until(() => machine.sandboxes.size === 2);
  assert.deepEqual(images(), ['debian:bookworm-slim', 'node:20-slim']);
  const first = pool.environment(debian('1'));
  assert.deepEqual(await first.start({ signal: never }), { imageMs: 0, bootMs: 0 });
  assert.match(first.name, /^pool-/);
  await until(() => machine.sandboxes.size === 3);
  await first.destroy();
  assert.equal(machine.sandboxes.has(first.name), false);
  assert.deepEqual(pool.use, { hits: 1, misses: 0, unused: 0 });
});

test('of the same image at once, each trial gets one of its own and none is made twice', async (t) => {
  const { machine, pool } = poolOf(t, { size: 4 });
  const specs = ['1', '2', '3', '4'].map(debian);
  pool.fill(inOrder(...specs));
  await until(() => machine.sandboxes.size === 4);
  const taken = specs.map((spec) => pool.environment(spec));
  await Promise.all(taken.map((one) => one.start({ signal: never })));
  assert.equal(new Set(taken.map(({ name }) => name)).size, 4);
  assert.equal(machine.sandboxes.size, 4);
  await Promise.all(taken.map((one) => one.destroy()));
  await pool.close();
  assert.equal(machine.sandboxes.size, 0);
});

const others: readonly (readonly [string, Partial<EnvironmentSpec>])[] = [
  ['an image', { image: { kind: 'prebuilt', reference: 'ubuntu:24.04' } }],
  ['a variable', { env: { KEY: 'value' } }],
  ['a network', { network: { mode: 'no-network' } }],
  ['a limit', { limits: { cpus: 2, memoryMb: null, storageMb: null, pids: null } }],
  ['a working folder', { workdir: '/work' }],
  ['a longer life', { labels: { ...debian('x').labels, expiresAt: '2200-01-01T00:00:00.000Z' } }],
  ['a build by force', { forceBuild: true }],
];
for (const [what, difference] of others)
  test(`a trial that asks for ${what} of its own is not given one without`, async (t) => {
    const { machine, pool } = poolOf(t, { size: 1 });
    pool.fill(inOrder(debian('1')));
    await until(() => machine.sandboxes.size === 1);
    const other = pool.environment(environmentSpec('other', difference));
    await other.start({ signal: never });
    assert.equal(other.name, 'other');
    assert.deepEqual(pool.use, { hits: 0, misses: 1, unused: 0 });
    await other.destroy();
  });

test('what nobody takes in time is removed, and so is all that is left at the end', async (t) => {
  const { machine, pool } = poolOf(t, { size: 1, idleMs: 30 });
  pool.fill(inOrder(debian('1')));
  await until(() => pool.use.unused === 1 && machine.sandboxes.size === 0);
});

test('a sandbox that died in the pool is not given to a trial', async (t) => {
  const { machine, pool } = poolOf(t, { size: 1 });
  pool.fill(inOrder(debian('1')));
  await until(() => machine.sandboxes.size === 1);
  const [name = ''] = machine.sandboxes.keys();
  await new FakeProvider(machine).destroyByName(name);
  const environment = pool.environment(debian('1'));
  await environment.start({ signal: never });
  assert.equal(environment.name, '1');
  await environment.destroy();
});

test('a sandbox that did not start is made again, so that every trial finds one', async (t) => {
  const { machine, pool } = poolOf(t, { size: 4 });
  const failure = new RolloutError('ENVIRONMENT_START_FAILED', 'no room', { phase: 'environment' });
  machine.faults.plant({ at: 'start', does: failure, times: 2 });
  const specs = Array.from({ length: 8 }, (_, n) => debian(`trial-${n}`));
  pool.fill(inOrder(...specs));
  for (const spec of specs) {
    await until(() => machine.sandboxes.size > 0);
    const environment = pool.environment(spec);
    await environment.start({ signal: never });
    await environment.destroy();
  }
  assert.deepEqual(pool.use, { hits: 8, misses: 0, unused: 0 });
});

for (const [code, starts] of [
  ['ENVIRONMENT_START_FAILED', 3],
  ['IMAGE_NOT_FOUND', 1],
] as const)
  test(`a sandbox that fails with ${code} each time is tried ${starts} times in all`, async (t) => {
    const { machine, pool } = poolOf(t, { size: 2 });
    let tried = 0;
    machine.faults.plant({
      at: 'start',
      does: new RolloutError(code, 'no', { phase: 'environment' }),
      when: (name) => {
        tried += name.startsWith('pool-') ? 1 : 0;
        return name.startsWith('pool-');
      },
    });
    pool.fill(inOrder(debian('1')));
    await until(() => tried === starts);
    await systemClock.sleep(30, never);
    assert.equal(tried, starts);
    const own = pool.environment(debian('1'));
    await own.start({ signal: never });
    assert.equal(own.name, '1');
    await own.destroy();
  });
