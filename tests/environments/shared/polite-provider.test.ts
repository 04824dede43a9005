import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { isRolloutError, RolloutError } from '../../../src/core/errors.ts';
import { LinkedAbort, never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { Environment, EnvironmentSpec } from '../../../src/environments/environment.ts';
import { politeProvider } from '../../../src/environments/shared/polite-provider.ts';
import {
  WrappedEnvironment,
  type StartOptions,
} from '../../../src/environments/shared/wrapped-environment.ts';
import { WrappedProvider } from '../../../src/environments/shared/wrapped-provider.ts';
import type { SandboxLimits } from '../../../src/store/sandbox-ledger.ts';
import { SqliteSandboxLedger } from '../../../src/store/sqlite/sqlite-sandbox-ledger.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { FastClock } from '../../fakes/fast-clock.ts';

const unlimited: SandboxLimits = { createsPerSecond: null, maxLive: null, maxHours: null };

/** Providers of one machine, as several processes have them: a ledger file for all, a connection for each. */
async function machineOf(t: TestContext, clock = systemClock) {
  const dir = await mkdtemp(join(tmpdir(), 'slipway-polite-'));
  const machine = new FakeMachine();
  const file = join(dir, 'ledger.sqlite');
  const opened: { close(): Promise<void> }[] = [];
  t.after(async () => {
    for (const each of opened) await each.close();
    await rm(dir, { recursive: true });
  });
  const process = (limits: Partial<SandboxLimits>, inner = new FakeProvider(machine)) => {
    const provider = politeProvider(inner, {
      ledger: SqliteSandboxLedger.open(file),
      limits: { ...unlimited, ...limits },
      ...{ clock, logger: silentLogger, random: () => 0, owner: `process-${opened.length}` },
    });
    opened.push(provider);
    return provider;
  };
  return { machine, process };
}

const soon = { labels: { ...environmentSpec('x').labels, expiresAt: '2100-01-01T00:00:00.000Z' } };

test('creations of all processes together keep to the rate, one process after the other', async (t) => {
  const clock = new FastClock(10);
  const { process } = await machineOf(t, clock);
  const [a, b] = [process({ createsPerSecond: 5 }), process({ createsPerSecond: 5 })];
  const starts: { readonly by: string; readonly atMs: number }[] = [];
  const start = async (by: string, n: number): Promise<void> => {
    const environment = (by === 'a' ? a : b).environment(environmentSpec(`${by}-${n}`));
    await environment.start({ signal: never });
    starts.push({ by, atMs: clock.monotonicMs() });
  };
  await Promise.all([0, 1, 2, 3, 4, 5].flatMap((n) => [start('a', n), start('b', n)]));
  const [first, last] = [starts[0]!.atMs, starts.at(-1)!.atMs];
  assert.ok(last - first >= 11 * 200, `${last - first} ms for 12 creations`);
  const early = starts.slice(0, 6).map(({ by }) => by);
  assert.ok(early.includes('a') && early.includes('b'), `only one was served: ${early.join('')}`);
});

test('a sandbox over the limit waits until another one is gone, whichever process had it', async (t) => {
  const { machine, process } = await machineOf(t, new FastClock(20));
  const [a, b] = [process({ maxLive: 2 }), process({ maxLive: 2 })];
  const one = a.environment(environmentSpec('one'));
  await one.start({ signal: never });
  await b.environment(environmentSpec('two')).start({ signal: never });
  const three = b.environment(environmentSpec('three'));
  const waiting = three.start({ signal: never });
  const four = a.environment(environmentSpec('four'));
  using leaving = new LinkedAbort([]);
  const left = assert.rejects(four.start({ signal: leaving.signal }), /left/);
  await systemClock.sleep(50, never);
  assert.deepEqual([...machine.sandboxes.keys()], ['one', 'two']);
  leaving.abort(new Error('left'));
  await left;
  await one.destroy();
  await waiting;
  assert.deepEqual([...machine.sandboxes.keys()], ['two', 'three']);
  // What a killed process had is given back by whoever cleans up after it.
  const five = a.environment(environmentSpec('five')).start({ signal: never });
  await a.destroyByName('two');
  await five;
});

test('without the ledger the same demand goes over the limit', async (t) => {
  const { machine } = await machineOf(t);
  const provider = new FakeProvider(machine);
  for (const name of ['one', 'two', 'three'])
    await provider.environment(environmentSpec(name)).start({ signal: never });
  assert.equal(machine.sandboxes.size, 3);
});

test('hours that are used up refuse by name, and count what other processes ran', async (t) => {
  const clock = new FastClock(3_600_000); // an hour per millisecond
  const { process } = await machineOf(t, clock);
  const a = process({ maxHours: 2 });
  await a.environment(environmentSpec('one', soon)).start({ signal: never });
  await systemClock.sleep(5, never);
  await assert.rejects(
    process({ maxHours: 2 }).environment(environmentSpec('two')).start({ signal: never }),
    (error) =>
      isRolloutError(error, 'SANDBOX_HOURS_EXHAUSTED') &&
      error.field === 'environment.kwargs.max_sandbox_hours' &&
      !error.retryable,
  );
  await process({}).environment(environmentSpec('three')).start({ signal: never });
});

/** Answers that it is asked too often, as many times as it is told. */
class ThrottlingProvider extends WrappedProvider {
  refusals = 0;
  starts = 0;

  override environment(spec: EnvironmentSpec): Environment {
    return new ThrottledEnvironment(super.environment(spec), this);
  }
}

class ThrottledEnvironment extends WrappedEnvironment {
  protected readonly inner: Environment;
  readonly #by: ThrottlingProvider;

  constructor(inner: Environment, by: ThrottlingProvider) {
    super();
    this.inner = inner;
    this.#by = by;
  }

  override async start(options: StartOptions) {
    this.#by.starts += 1;
    if (this.#by.refusals > 0) {
      this.#by.refusals -= 1;
      throw new RolloutError('ENVIRONMENT_THROTTLED', 'too many', {
        phase: 'environment',
        retryAfterMs: 3_000,
      });
    }
    return await super.start(options);
  }
}

test('a provider that throttles is left alone as long as it says, by everybody on the machine', async (t) => {
  const clock = new FastClock(20);
  const { machine, process } = await machineOf(t, clock);
  const throttling = new ThrottlingProvider(new FakeProvider(machine));
  throttling.refusals = 1;
  const [a, b] = [process({}, throttling as unknown as FakeProvider), process({})];
  const beganMs = clock.monotonicMs();
  const started = a.environment(environmentSpec('one')).start({ signal: never });
  while (throttling.starts === 0) await systemClock.sleep(1, never);
  await b.environment(environmentSpec('two')).start({ signal: never });
  assert.ok(clock.monotonicMs() - beganMs >= 2_900, 'the other process did not wait');
  await started;
  assert.equal(throttling.starts, 2);
  assert.deepEqual([...machine.sandboxes.keys()].sort(), ['one', 'two']);
});

test('a start that is refused again and again fails with the refusal', async (t) => {
  const { machine, process } = await machineOf(t, new FastClock(2_000));
  const throttling = new ThrottlingProvider(new FakeProvider(machine));
  throttling.refusals = 100;
  const environment = process({}, throttling as unknown as FakeProvider).environment(
    environmentSpec('one'),
  );
  await assert.rejects(environment.start({ signal: never }), /ENVIRONMENT_THROTTLED|too many/);
  assert.equal(throttling.starts, 8);
  await environment.destroy();
});

/** Its image takes ten seconds, and is built once for all who ask. */
class BuildingProvider extends WrappedProvider {
  readonly createdAtMs: number[] = [];
  readonly #clock: FastClock;
  #building: Promise<void> | null = null;

  constructor(inner: FakeProvider, clock: FastClock) {
    super(inner);
    this.#clock = clock;
  }

  override environment(spec: EnvironmentSpec): Environment {
    return new BuiltEnvironment(super.environment(spec), {
      built: () => (this.#building ??= this.#clock.sleep(10_000, never)),
      onCreate: () => void this.createdAtMs.push(this.#clock.monotonicMs()),
    });
  }
}

class BuiltEnvironment extends WrappedEnvironment {
  protected readonly inner: Environment;
  readonly #by: { readonly built: () => Promise<void>; readonly onCreate: () => void };

  constructor(
    inner: Environment,
    by: { readonly built: () => Promise<void>; readonly onCreate: () => void },
  ) {
    super();
    this.inner = inner;
    this.#by = by;
  }

  override async start(options: StartOptions) {
    await this.#by.built();
    await options.admitCreate?.(options.signal);
    this.#by.onCreate();
    return await super.start({ signal: options.signal });
  }
}

test('sandboxes that waited for one build are created at the rate, not all at once behind it', async (t) => {
  const clock = new FastClock(20);
  const { machine, process } = await machineOf(t, clock);
  const building = new BuildingProvider(new FakeProvider(machine), clock);
  const provider = process({ createsPerSecond: 5 }, building as unknown as FakeProvider);
  const names = Array.from({ length: 12 }, (_, n) => `built-${n}`);
  await Promise.all(
    names.map((name) => provider.environment(environmentSpec(name)).start({ signal: never })),
  );
  const [first = 0, last = 0] = [building.createdAtMs[0], building.createdAtMs.at(-1)];
  assert.ok(last - first >= 11 * 200, `${last - first} ms for 12 creations`);
});
