/**
 * Trials that ask the fake of a provider for their sandboxes over its real wire, wrapped as a run of ours wraps it: limits, journal, pool. Creations take 2 s there,
 * 5 a second are taken, some fail, and of some the answer is lost though the sandbox is made.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRolloutError } from '../../../src/core/errors.ts';
import { Limiter } from '../../../src/core/limiter.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type {
  EnvironmentProvider,
  EnvironmentSpec,
} from '../../../src/environments/environment.ts';
import { ownedProvider } from '../../../src/environments/shared/owned-provider.ts';
import { politeProvider } from '../../../src/environments/shared/polite-provider.ts';
import { WarmPool, type PoolUse } from '../../../src/environments/shared/warm-pool.ts';
import { MemorySandboxJournalStore } from '../../../src/store/memory/memory-sandbox-journal.ts';
import { SqliteSandboxLedger } from '../../../src/store/sqlite/sqlite-sandbox-ledger.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FastClock } from '../../fakes/fast-clock.ts';
import { ServiceFaults } from '../../fakes/sandbox-host/service-faults.ts';
import { openFakeService, type RemoteKind } from './fake-services.ts';

export const createsPerSecond = 5;

export interface Demand {
  readonly kind: RemoteKind;
  readonly trials: number;
  readonly trialMs: number;
  /** Trials that begin per second at most. */
  readonly perSecond: number;
  /** 0 = no pool. */
  readonly poolSize: number;
  /** How much faster than outside time passes. */
  readonly rate: number;
  /** Sandboxes at once that the service allows; default: any number. */
  readonly maxLive?: number;
  /** false: the control, in which nobody waits for a turn. */
  readonly isPolite?: boolean;
}

export interface DemandReport {
  readonly ended: number;
  /** Creations that the service took, and those that it refused: too many a second, and too many sandboxes. */
  readonly created: number;
  readonly refused: number;
  readonly refusedLive: number;
  readonly peakPerSecond: number;
  readonly peakLive: number;
  readonly failedCreates: number;
  readonly lostAnswers: number;
  /** In the service's own list at the end. */
  readonly left: readonly string[];
  /** Sandboxes that the journal still holds at the end. */
  readonly open: number;
  readonly use: PoolUse;
  readonly fakeSec: number;
}

const attempts = 4;
/** Between the filling of the pool and the first trial. */
const settleMs = 4_000;

export async function meetDemand(demand: Demand): Promise<DemandReport> {
  const { kind, trials, perSecond, poolSize, rate, maxLive = null, isPolite = true } = demand;
  const dir = await mkdtemp(join(tmpdir(), 'slipway-demand-'));
  const clock = new FastClock(rate);
  const faults = new ServiceFaults({ 'failed-create': 0.05, 'lost-answer': 0.02 }, 7);
  await using service = await openFakeService(kind, {
    ...{ clock, faults },
    limits: { createsPerSecond, createMs: 2_000, liveSandboxes: maxLive },
  });
  const polite = politeProvider(service.provider(clock), {
    ledger: SqliteSandboxLedger.open(join(dir, 'ledger.sqlite')),
    limits: { createsPerSecond: isPolite ? createsPerSecond : null, maxLive, maxHours: null },
    ...{ clock, logger: silentLogger, random: Math.random, owner: 'demand' },
  });
  const journals = new MemorySandboxJournalStore();
  const journal = await journals.open('run');
  const owned = ownedProvider(polite, {
    ...{ journal, clock, logger: silentLogger, limiter: new Limiter(256) },
  });
  const pool = new WarmPool(owned, {
    ...{ size: poolSize, idleMs: 3_600_000, clock, logger: silentLogger },
  });
  try {
    await polite.preflight(never);
    const specs = Array.from({ length: trials }, (_, n) => environmentSpec(`trial-${n}`));
    if (poolSize > 0) {
      pool.fill(inOrder(specs));
      await clock.sleep((poolSize / createsPerSecond) * 1_000 + settleMs, never);
    }
    const running: Promise<boolean>[] = [];
    const beganMs = clock.monotonicMs();
    for (const [n, spec] of specs.entries()) {
      const dueMs = beganMs + (n / perSecond) * 1_000;
      await clock.sleep(Math.max(0, dueMs - clock.monotonicMs()), never);
      running.push(runTrial(pool, spec, () => clock.sleep(demand.trialMs, never)));
    }
    const ended = (await Promise.all(running)).filter(Boolean).length;
    const { use } = pool;
    await pool.close();
    await journal.close();
    const dead = await journals.deadRuns();
    const { created, refused, peakPerSecond, peakLive } = service.host.meter;
    return {
      ...{ ended, created, refused: refused.rate, refusedLive: refused.quota },
      ...{ peakPerSecond, peakLive, use },
      failedCreates: faults.count('failed-create'),
      lostAnswers: faults.count('lost-answer'),
      left: service.sandboxes().map(({ name }) => name),
      open: dead.reduce((sum, run) => sum + run.open.length, 0),
      fakeSec: Math.round((clock.monotonicMs() - beganMs) / 1_000),
    };
  } finally {
    await pool.close();
    await polite.close();
    await rm(dir, { recursive: true });
  }
}

/** Whether the trial came to its end; one whose sandbox fails in passing is tried again, as a job does. */
async function runTrial(
  provider: EnvironmentProvider,
  spec: EnvironmentSpec,
  work: () => Promise<void>,
): Promise<boolean> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const environment = provider.environment({ ...spec, name: `${spec.name}-${attempt}` });
    try {
      await environment.start({ signal: never });
      if (!(await environment.isAlive(never))) throw new Error(`${environment.name} is dead`);
      await work();
      return true;
    } catch (error) {
      if (!isRolloutError(error) || !error.retryable) throw error;
    } finally {
      await environment.destroy();
    }
  }
  return false;
}

async function* inOrder(specs: readonly EnvironmentSpec[]): AsyncGenerator<EnvironmentSpec> {
  for (const spec of specs) {
    await Promise.resolve();
    yield spec;
  }
}
