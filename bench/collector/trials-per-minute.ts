/** Batches of null agents through collector, server, gateway, engine and back: an agent asks its model once, its sample is made and read. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { SynchronousDriver } from '../../src/collector/drivers/synchronous-driver.ts';
import { never } from '../../src/core/linked-abort.ts';
import { Stack } from './stack.ts';

const groupSize = 8;

export interface Pace {
  readonly trialsPerMinute: number;
  /** Of the server, without its gateway. */
  readonly serverMsPerTrial: number;
}

export async function trialsPerMinute(concurrency: number, trials: number): Promise<Pace> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
  try {
    await using stack = await Stack.start(dir, { concurrency, latencyMs: 0, train: true });
    const batchGroups = trials / groupSize;
    const parts = stack.parts(
      { groupSize, batchGroups, maxConcurrent: concurrency },
      Array.from({ length: 2 * batchGroups }, () => ({ agent_calls: 1 })),
    );
    const driver = new SynchronousDriver(parts, 'bench');
    const batch = async (): Promise<void> => {
      const collected = await driver.collect(never);
      const members = collected?.groups.flatMap((group) => group.members) ?? [];
      const whole = members.filter(({ end }) => end.samples.length === 1).length;
      if (whole !== trials) throw new Error(`${whole} of ${trials} trials came with their sample`);
    };
    try {
      // What a process does only once is no part of a rate.
      await batch();
      const cpuBefore = await stack.server.metric('process_cpu_seconds_total');
      const begin = performance.now();
      await batch();
      const minutes = (performance.now() - begin) / 60_000;
      const cpuSec = (await stack.server.metric('process_cpu_seconds_total')) - cpuBefore;
      return { trialsPerMinute: trials / minutes, serverMsPerTrial: (1_000 * cpuSec) / trials };
    } finally {
      await driver.stop('shutdown');
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
