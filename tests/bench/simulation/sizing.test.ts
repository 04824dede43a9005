import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { it } from 'node:test';
import { costsOf, keptFigures, reportedFigures } from '../../../bench/simulation/figures.ts';
import {
  hostLimits,
  lifeMs,
  livePerHost,
  narrowest,
  type Workload,
} from '../../../bench/simulation/sizing.ts';

const workload: Workload = {
  ...{ name: 'x', turns: 10, callMs: 8_000, commandMs: 1_000, verifyMs: 10_000 },
  ...{ eventsPerCall: 100, sandboxMib: 100, taskCpuMs: 1_000 },
};
const costs = {
  ...{ frontEndMs: 1, queueMs: 1, queueTripMs: 1, workerThreadMs: 10, callThreadMs: 4 },
  ...{ hostMs: 500, turnHostMs: 50 },
};

it('a host carries what the narrowest of memory, processors and thread carries', () => {
  const host = { cores: 4, memoryGib: 10 };
  assert.equal(lifeMs(workload), 100_000);
  const limits = hostLimits(workload, host, costs);
  // 85 % of 10 GiB; 70 % of 4 processors at 2 s a life; 60 % of a thread at 50 ms a life.
  assert.deepEqual(limits, { memory: 87, processors: 140, thread: 1_200 });
  assert.equal(livePerHost(limits), 87);
  assert.equal(narrowest(limits), 'memory');
  const wide = hostLimits(workload, { ...host, memoryGib: 100 }, costs);
  assert.equal(narrowest(wide), 'processors');
  const relayed = hostLimits(
    { ...workload, eventsPerCall: 0 },
    { cores: 99, memoryGib: 9_999 },
    {
      ...costs,
      callThreadMs: 100,
    },
  );
  assert.equal(narrowest(relayed), 'thread');
});

it('costs come from the figures of benches, in milliseconds of a processor', () => {
  const kept = keptFigures();
  const { life, oraclePace, event } = kept.figures;
  const made = costsOf(kept, { eventsPerCall: 100 });
  assert.equal(made.frontEndMs, life.value / 1_000);
  assert.equal(made.hostMs, (kept.machine.cores * 60_000) / oraclePace.value);
  assert.equal(made.callThreadMs, event.value / 10);
  for (const cost of Object.values(made)) assert.ok(cost > 0);
});

it('figures of a fresh report take the place of the kept ones, and a missing one is named', () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'figures-'));
  try {
    const kept = keptFigures();
    const benches = Object.values(kept.figures).map(({ bench, name }, index) => ({
      ...{ bench, seconds: 1, problem: null },
      document: { bench, size: 'short', figures: [], goals: [{ name, measured: index + 1 }] },
    }));
    const merged = [...Map.groupBy(benches, ({ bench }) => bench)].map(([bench, runs]) => ({
      ...{ bench, seconds: 1, problem: null },
      document: { bench, figures: [], goals: runs.flatMap(({ document }) => document.goals) },
    }));
    const file = path.join(dir, 'report.json');
    writeFileSync(file, JSON.stringify({ cores: 8, benches: merged }));
    const fresh = reportedFigures(kept, file);
    assert.equal(fresh.machine.cores, 8);
    assert.deepEqual(
      Object.values(fresh.figures).map(({ value }) => value),
      Object.values(kept.figures).map((_, index) => index + 1),
    );
    writeFileSync(file, JSON.stringify({ cores: 8, benches: merged.slice(1) }));
    assert.throws(() => reportedFigures(kept, file), /has no "processor time per life"/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
