/** Many batches through the whole core, with samples, losses and aborts; nothing of a batch may outlive it. */
import { setImmediate as turn } from 'node:timers/promises';
import { never } from '../../src/core/linked-abort.ts';
import { SynchronousDriver } from '../../src/collector/drivers/synchronous-driver.ts';
import type { MemberEnd, MemberRequest } from '../../src/collector/member.ts';
import type { RolloutPort } from '../../src/collector/rollout-port.ts';
import type { CollectorObserver } from '../../src/collector/events.ts';
import { lost, scene, success } from './scripted-rollouts.ts';

/** Every fifth member waits for the abort, every twentieth attempt is lost. */
class QuickRollouts implements RolloutPort {
  started = 0;

  async run({ attempt, memberIndex, groupIndex }: MemberRequest, signal: AbortSignal) {
    this.started += 1;
    if (this.started % 20 === 0 && attempt === 1) return lost;
    if (groupIndex % 5 === 4 && memberIndex === 0)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await turn();
    return sampledEnd();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function sampledEnd(): MemberEnd {
  const tokens = Array.from({ length: 600 }, (_, at) => at);
  return {
    ...success,
    samples: [
      {
        ...{ tokens, promptLength: 100, lossMask: tokens.slice(100).map(() => 1 as const) },
        ...{ logprobs: tokens.slice(100).map((at) => -at / 7), weight: 1, isTruncated: false },
        spans: [{ begin: 100, end: 600, isTrained: true, weightVersion: '1' }],
      },
    ],
  };
}

export interface MemoryRun {
  readonly rollouts: number;
  /** Bytes in use after collections of garbage, each after so many rollouts. */
  readonly points: readonly { readonly rollouts: number; readonly bytes: number }[];
}

/** Needs `--expose-gc`. `observe`: what a leaking observer would do, for the control. */
export async function runMemory(
  { rollouts, every }: { readonly rollouts: number; readonly every: number },
  observe: CollectorObserver = () => undefined,
): Promise<MemoryRun> {
  const port = new QuickRollouts();
  const parts = scene(
    {
      ...{ groupSize: 8, batchGroups: 8, startGroups: 10, topUp: 'whole', refillPauseMs: 0 },
      abort: { drainMs: 1, settleMs: 1_000 },
    },
    { rollouts: port, observe },
  );
  const driver = new SynchronousDriver(parts, 'soak');
  const points: { rollouts: number; bytes: number }[] = [];
  for (let next = every; port.started < rollouts;) {
    const batch = await driver.collect(never);
    await batch?.quiet;
    if (port.started < next) continue;
    next += every;
    globalThis.gc?.();
    await turn();
    globalThis.gc?.();
    points.push({ rollouts: port.started, bytes: process.memoryUsage().heapUsed });
  }
  return { rollouts: port.started, points };
}

/** Bytes per thousand rollouts, by least squares over all points. */
export function growth({ points }: MemoryRun): number {
  const n = points.length;
  const meanX = points.reduce((sum, { rollouts }) => sum + rollouts, 0) / n;
  const meanY = points.reduce((sum, { bytes }) => sum + bytes, 0) / n;
  const over = points.reduce((sum, at) => sum + (at.rollouts - meanX) * (at.bytes - meanY), 0);
  const under = points.reduce((sum, at) => sum + (at.rollouts - meanX) ** 2, 0);
  return (1_000 * over) / under;
}
