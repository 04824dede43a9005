/**
 * `npm run bench -- scale`: rollouts per second and the time of a dispatch, from its place at the front end to its execution by a worker's backend, with 1, 2 and 4 workers on
 * NATS JetStream, beside one server without a queue. The backend waits 50 ms, each worker has the same few places, so that waiting and not the processors are what is scaled;
 * rounds are interleaved, figures are medians.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { seededRandom } from '../src/core/seeded-random.ts';
import { whyNoNats } from '../tests/support/nats/nats-cluster.ts';
import { machineBusyMs } from './processor-time.ts';
import { report, reportWhenLate, type Figure, type Goal, type Results } from './report.ts';
import { interleaved, median, quantile } from './samples.ts';
import { ScaledService, type DispatchTimes, type Spent } from './scale/service.ts';
import { ListeningProcess, load } from './server/processes.ts';
import { rolloutBody } from './server/rollout-body.ts';
import { isShort, sized } from './size.ts';

const rounds = sized(3, 1);
const slotsPerWorker = 1;
const workMs = 50;
const measureSec = sized(4, 3);
/** In each round. */
const asks = 20;
const warmUps = 100;
const fleets = [0, 1, 2, 4] as const;
type Fleet = (typeof fleets)[number];

interface Seen {
  readonly perSec: number[];
  readonly busyPercent: number[];
  readonly dispatches: DispatchTimes[];
  /** Processor time of a rollout. */
  readonly costs: Spent[];
}

const none = (): Seen => ({ perSec: [], busyPercent: [], dispatches: [], costs: [] });
const seen: Record<Fleet, Seen> = { 0: none(), 1: none(), 2: none(), 4: none() };
const wanted = fleets.filter((workers) => !isShort || workers > 0);

function capacityPerSec(workers: Fleet): number {
  return (1_000 * Math.max(1, workers) * slotsPerWorker) / workMs;
}

/** Takes the callbacks of one service. */
class Receiver implements AsyncDisposable {
  readonly url: string;
  readonly #process: ListeningProcess;

  static async start(): Promise<Receiver> {
    return new Receiver(await ListeningProcess.part('receiver'));
  }

  private constructor(process: ListeningProcess) {
    this.#process = process;
    this.url = process.url;
  }

  /** Rollouts whose end it has been told. */
  async count(): Promise<number> {
    return Number(await (await fetch(`${this.url}/count`)).text());
  }

  async until(count: number): Promise<void> {
    while ((await this.count()) < count) await delay(100);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}

interface Measured {
  readonly service: ScaledService;
  readonly receiver: Receiver;
  readonly workers: Fleet;
}

/** The first rollouts meet programs that have not been compiled yet. */
async function warmUp({ service, receiver }: Measured): Promise<void> {
  const before = await receiver.count();
  await load({
    ...{ url: service.url, prefix: 'warm', count: warmUps, concurrency: 4 },
    ...{ durationMs: 0, callbackUrl: receiver.url },
  });
  await receiver.until(before + warmUps);
}

/** More is submitted than can run, and ends are counted while every place is taken. */
async function measurePace({ service, receiver, workers }: Measured): Promise<number> {
  const first = await receiver.count();
  const count = Math.ceil(capacityPerSec(workers) * (measureSec + 1));
  await load({
    ...{ url: service.url, prefix: 'pace', count, concurrency: 16 },
    ...{ durationMs: workMs, callbackUrl: receiver.url },
  });
  // What came before all was submitted shared the processors with that.
  const [before, busyBefore, began] = [await receiver.count(), machineBusyMs(), performance.now()];
  const spentBefore = service.spent();
  if (before - first > count / 2) throw new Error('the load came too slowly for what is measured');
  await receiver.until(first + count - 2 * slotsPerWorker * Math.max(1, workers));
  const ended = (await receiver.count()) - before;
  const ms = performance.now() - began;
  const busyMs = machineBusyMs() - busyBefore;
  seen[workers].busyPercent.push((100 * busyMs) / (ms * os.availableParallelism()));
  seen[workers].costs.push(costOf(spentBefore, service.spent(), ended));
  await receiver.until(first + count);
  return (1_000 * ended) / ms;
}

function costOf(before: Spent, after: Spent, count: number): Spent {
  const each = (part: keyof Spent): number => (after[part] - before[part]) / count;
  return {
    frontEndMs: each('frontEndMs'),
    workersMs: each('workersMs'),
    natsMs: each('natsMs'),
  };
}

/** For each place there is one who comes again some time after his rollout has ended: nobody waits for anything but his dispatch, and most places are free. */
async function measureDispatch({ service, receiver, workers }: Measured): Promise<void> {
  const first = await receiver.count();
  const random = seededRandom(workers + 1);
  const ids = Array.from({ length: asks }, (_, index) => `ask-${index}`);
  const left = [...ids];
  const askInTurn = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      const answer = await fetch(`${service.url}/rollout`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: rolloutBody(id, { durationMs: workMs, callbackUrl: receiver.url }),
      });
      await answer.arrayBuffer();
      if (answer.status !== 202) throw new Error(`${id}: ${answer.status}`);
      await delay(workMs * (4 + 2 * random()));
    }
  };
  const places = slotsPerWorker * Math.max(1, workers);
  await Promise.all(Array.from({ length: places }, askInTurn));
  await receiver.until(first + asks);
  seen[workers].dispatches.push(...(await service.dispatchTimes(ids)));
}

async function measure(workers: Fleet): Promise<number> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
  try {
    await using service = await ScaledService.start({ dir, workers, slotsPerWorker });
    await using receiver = await Receiver.start();
    const measured = { service, receiver, workers };
    await warmUp(measured);
    await measureDispatch(measured);
    const perSec = await measurePace(measured);
    seen[workers].perSec.push(perSec);
    return perSec;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function results(): Results {
  const figures: Figure[] = [];
  const goals: Goal[] = [];
  for (const workers of wanted) {
    const { perSec, busyPercent, dispatches, costs } = seen[workers];
    if (perSec.length === 0) continue;
    const name =
      workers === 0 ? 'without a queue' : `${workers} ${workers === 1 ? 'worker' : 'workers'}`;
    const ms = (what: keyof DispatchTimes, share: number): Omit<Figure, 'name'> => ({
      value: quantile(
        dispatches.map((times) => times[what]),
        share,
      ),
      unit: 'ms',
    });
    figures.push(
      { name: `${name}: rollouts`, value: median(perSec), unit: '/s' },
      {
        name: `${name}: of what its places allow`,
        ...{ value: median(perSec) / capacityPerSec(workers), unit: '×' },
      },
      { name: `${name}: accepted to at work p50`, ...ms('acceptedMs', 0.5) },
      { name: `${name}: accepted to at work p99`, ...ms('acceptedMs', 0.99) },
    );
    const cost = (part: keyof Spent): Omit<Figure, 'name'> => ({
      value: median(costs.map((one) => one[part])),
      unit: 'ms',
    });
    const whose = workers === 0 ? 'server' : 'front end';
    figures.push({ name: `${name}: processor time, ${whose}`, ...cost('frontEndMs') });
    if (workers > 0)
      figures.push(
        { name: `${name}: processor time, workers`, ...cost('workersMs') },
        { name: `${name}: processor time, NATS`, ...cost('natsMs') },
      );
    const p50 = { name: `${name}: dispatch p50`, ...ms('dispatchMs', 0.5) };
    const busy = { name: `${name}: processors in use`, value: median(busyPercent) };
    if (workers === 0) {
      figures.push(p50, { ...busy, unit: '%' });
      continue;
    }
    goals.push(
      { name: p50.name, measured: p50.value, limit: 5, direction: 'at most', unit: 'ms' },
      { name: busy.name, measured: busy.value, limit: 80, direction: 'at most', unit: '%' },
    );
    if (workers > 1)
      goals.push({
        name: `${name}: pace over that of ${workers} times one worker`,
        measured: median(
          perSec.map((pace, round) => pace / (workers * (seen[1].perSec[round] ?? Number.NaN))),
        ),
        ...{ limit: 0.8, direction: 'at least', unit: '×' },
      });
  }
  return { figures, goals };
}

if (whyNoNats !== false) throw new Error(whyNoNats);
reportWhenLate('scale', results);
await interleaved(
  rounds,
  Object.fromEntries(wanted.map((workers) => [`${workers}`, () => measure(workers)])),
);
report('scale', results());
