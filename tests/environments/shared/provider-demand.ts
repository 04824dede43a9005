import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type {
  Environment,
  EnvironmentProvider,
  EnvironmentSpec,
} from '../../../src/environments/environment.ts';
import { politeProvider } from '../../../src/environments/shared/polite-provider.ts';
import { WarmPool, type PoolUse } from '../../../src/environments/shared/warm-pool.ts';
import {
  WrappedEnvironment,
  type StartOptions,
} from '../../../src/environments/shared/wrapped-environment.ts';
import { WrappedProvider } from '../../../src/environments/shared/wrapped-provider.ts';
import { SqliteSandboxLedger } from '../../../src/store/sqlite/sqlite-sandbox-ledger.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { FastClock } from '../../fakes/fast-clock.ts';
import { CreateMeter, CreateRefused } from '../../fakes/sandbox-host/create-meter.ts';
import { ServiceFaults } from '../../fakes/sandbox-host/service-faults.ts';

export interface Demand {
  readonly trials: number;
  readonly trialMs: number;
  /** Trials that begin per second at most. */
  readonly perSecond: number;
  readonly poolSize: number;
  /** How much faster than outside time passes. */
  readonly rate: number;
  /** false: the control, in which nobody waits for a turn. */
  readonly isPolite: boolean;
}

export interface DemandReport {
  readonly ended: number;
  readonly refusals: number;
  readonly peakPerSecond: number;
  readonly left: number;
  readonly use: PoolUse;
}

/** Trials that ask a provider of 2 s creates, 5 creates per second, 5 % failures and 2 % lost answers for their sandboxes. */
export async function meetDemand(demand: Demand): Promise<DemandReport> {
  const { trials, trialMs, perSecond, poolSize, rate, isPolite } = demand;
  const dir = await mkdtemp(join(tmpdir(), 'slipway-demand-'));
  const clock = new FastClock(rate);
  const machine = new FakeMachine();
  const meter = new CreateMeter({ liveSandboxes: null, createsPerSecond: 5, createMs: 2_000 });
  const faults = new ServiceFaults({ 'failed-create': 0.05, 'lost-answer': 0.02 }, 7);
  const service = new Service(new FakeProvider(machine), { clock, meter, faults });
  const polite = politeProvider(service, {
    ledger: SqliteSandboxLedger.open(join(dir, 'ledger.sqlite')),
    limits: { createsPerSecond: isPolite ? 5 : null, maxLive: null, maxHours: null },
    ...{ clock, logger: silentLogger, random: Math.random, owner: 'demand' },
  });
  const pool = new WarmPool(polite, {
    size: poolSize,
    idleMs: 3_600_000,
    ...{ clock, logger: silentLogger },
  });
  const specs = Array.from({ length: trials }, (_, n) => environmentSpec(`trial-${n}`));
  async function* schedule(): AsyncGenerator<EnvironmentSpec> {
    for (const spec of specs) {
      await Promise.resolve();
      yield spec;
    }
  }
  let ended = 0;
  const runTrial = async (spec: EnvironmentSpec): Promise<void> => {
    const environment = pool.environment(spec);
    try {
      await environment.start({ signal: never });
      await clock.sleep(trialMs, never);
      ended += 1;
    } finally {
      await environment.destroy();
    }
  };
  try {
    pool.fill(schedule());
    await clock.sleep((poolSize / 5) * 1_000 + 3_000, never); // filled before the first trial
    const running: Promise<unknown>[] = [];
    const beganMs = clock.monotonicMs();
    for (const [n, spec] of specs.entries()) {
      const dueMs = beganMs + (n / perSecond) * 1_000;
      await clock.sleep(Math.max(0, dueMs - clock.monotonicMs()), never);
      running.push(runTrial(spec));
    }
    await Promise.allSettled(running);
    const { use } = pool;
    await pool.close();
    const { refused, peakPerSecond } = meter;
    return { ended, refusals: refused.rate, peakPerSecond, left: machine.sandboxes.size, use };
  } finally {
    await pool.close();
    await polite.close();
    await rm(dir, { recursive: true });
  }
}

interface ServiceParts {
  readonly clock: FastClock;
  readonly meter: CreateMeter;
  readonly faults: ServiceFaults;
}

class Service extends WrappedProvider {
  readonly #parts: ServiceParts;

  constructor(inner: EnvironmentProvider, parts: ServiceParts) {
    super(inner);
    this.#parts = parts;
  }

  override environment(spec: EnvironmentSpec): Environment {
    return new ServiceEnvironment(() => this.inner.environment(spec), this.#parts);
  }
}

/** Creates as an adapter does: failures are repeated, a lost answer leaves a sandbox that is removed by name first. */
class ServiceEnvironment extends WrappedEnvironment {
  protected inner: Environment;
  readonly #make: () => Environment;
  readonly #parts: ServiceParts;

  constructor(make: () => Environment, parts: ServiceParts) {
    super();
    this.#make = make;
    this.inner = make();
    this.#parts = parts;
  }

  override async start(options: StartOptions) {
    const { clock, meter, faults } = this.#parts;
    for (let attempt = 1; ; attempt += 1) {
      if (attempt > 1) await options.admitCreate?.(options.signal);
      try {
        meter.take(clock.monotonicMs(), 0);
      } catch (error) {
        if (!(error instanceof CreateRefused)) throw error;
        const retryAfterMs = error.retryAfterMs ?? 1_000;
        throw new RolloutError('ENVIRONMENT_THROTTLED', error.message, {
          phase: 'environment',
          retryAfterMs,
        });
      }
      await clock.sleep(2_000, options.signal);
      const isFailed = faults.strikes('failed-create');
      const report = isFailed ? null : await this.inner.start(options);
      if (report !== null && !faults.strikes('lost-answer')) return report;
      await this.inner.destroy();
      this.inner = this.#make();
    }
  }
}
