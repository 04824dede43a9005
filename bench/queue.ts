/**
 * `npm run bench -- queue`: what NATS JetStream itself takes for the traffic of a rollout, with one node and with three: how long a message is on its way, how many
 * rollouts per second it carries, and the processor time of its nodes. What a fleet on it does can be no better. Rounds are interleaved, figures are medians.
 */
import { NatsCluster, whyNoNats } from '../tests/support/nats/nats-cluster.ts';
import { bareQueue, type BareQueueResult } from './queue/bare-queue.ts';
import { report, type Figure, type Goal } from './report.ts';
import { interleaved, median } from './samples.ts';
import { sized } from './size.ts';

const rounds = sized(3, 1);
const task = { count: sized(5_000, 2_000), trips: 200, together: 32 };
const seen: Record<'one' | 'three', BareQueueResult[]> = { one: [], three: [] };

async function measure(nodes: 1 | 3): Promise<number> {
  await using nats = await NatsCluster.start({ nodes });
  const result = await bareQueue(nats, task);
  seen[nodes === 1 ? 'one' : 'three'].push(result);
  return result.perSec;
}

if (whyNoNats !== false) throw new Error(whyNoNats);
await interleaved(rounds, { one: () => measure(1), three: () => measure(3) });

const figures: Figure[] = [];
const goals: Goal[] = [];
for (const [kind, results] of Object.entries(seen)) {
  const name = kind === 'one' ? 'one node' : 'three nodes';
  const of = (read: (result: BareQueueResult) => number): number => median(results.map(read));
  figures.push({
    name: `${name}: processor time of NATS per rollout`,
    ...{ value: of(({ serverCpuMs }) => serverCpuMs), unit: 'ms' },
  });
  goals.push(
    {
      name: `${name}: a message is there, p50`,
      measured: of(({ tripP50Ms }) => tripP50Ms),
      ...{ limit: kind === 'one' ? 2 : 5, direction: 'at most', unit: 'ms' },
    },
    {
      name: `${name}: rollouts`,
      measured: of(({ perSec }) => perSec),
      ...{ limit: kind === 'one' ? 1_000 : 500, direction: 'at least', unit: '/s' },
    },
  );
}
report('queue', { figures, goals });
