/** What NATS JetStream itself takes for the traffic of one rollout: a message, its claim by compare-and-set, the claim once more when the agent begins, an acknowledgement. */
import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { connect } from '@nats-io/transport-node';
import type { NatsCluster } from '../../tests/support/nats/nats-cluster.ts';
import { quantile } from '../samples.ts';
import { processorMs } from '../processor-time.ts';

export interface BareQueueResult {
  readonly perSec: number;
  /** From before a message is published until it is there. */
  readonly tripP50Ms: number;
  /** Of `nats-server`, for one rollout. */
  readonly serverCpuMs: number;
}

const subject = 'bench.work';
const stream = 'BENCH';

/** `together`: rollouts on their way at once while the pace is measured; the trip is measured one by one. */
export async function bareQueue(
  nats: NatsCluster,
  { count, trips, together }: Record<'count' | 'trips' | 'together', number>,
): Promise<BareQueueResult> {
  const [sender, taker] = [
    await connect({ servers: nats.url }),
    await connect({ servers: nats.url }),
  ];
  try {
    const replicas = nats.nodes.length;
    const streams = await jetstreamManager(sender);
    await streams.streams.add({
      ...{ name: stream, subjects: [subject], num_replicas: replicas },
      retention: RetentionPolicy.Workqueue,
    });
    await streams.consumers.add(stream, {
      ...{ durable_name: 'workers', ack_policy: AckPolicy.Explicit, max_ack_pending: 10_000 },
    });
    const claims = await new Kvm(taker).create('claims', { replicas });
    const consumer = await jetstream(taker).consumers.get(stream, 'workers');
    const messages = await consumer.consume({ max_messages: together });
    const arrived = new Map<string, (at: number) => void>();
    const work = async (): Promise<void> => {
      for await (const message of messages) {
        const id = message.string();
        arrived.get(id)?.(performance.now());
        void claims
          .create(id, 'claimed')
          .then((revision) => claims.update(id, 'begun', revision))
          .then(() => message.ackAck())
          .then(() => done.get(id)?.());
      }
    };
    const done = new Map<string, () => void>();
    const working = work();
    const publisher = jetstream(sender);
    const one = async (id: string): Promise<number> => {
      const there = new Promise<number>((resolve) => arrived.set(id, resolve));
      const finished = new Promise<void>((resolve) => done.set(id, resolve));
      const began = performance.now();
      await publisher.publish(subject, id);
      const ms = (await there) - began;
      await finished;
      arrived.delete(id);
      done.delete(id);
      return ms;
    };
    const times: number[] = [];
    for (let index = 0; index < trips; index += 1) times.push(await one(`trip-${index}`));
    const pids = nats.nodes.map(({ pid }) => pid ?? 0);
    const cpu = (): number => pids.reduce((sum, pid) => sum + processorMs(pid), 0);
    const [cpuBefore, begin] = [cpu(), performance.now()];
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < count) await one(`pace-${(next += 1)}`);
    };
    await Promise.all(Array.from({ length: together }, lane));
    const seconds = (performance.now() - begin) / 1_000;
    const serverCpuMs = (cpu() - cpuBefore) / count;
    messages.stop();
    await working;
    return { perSec: count / seconds, tripP50Ms: quantile(times, 0.5), serverCpuMs };
  } finally {
    await Promise.all([sender.close(), taker.close()]);
  }
}
