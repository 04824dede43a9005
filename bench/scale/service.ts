/** What is measured: a front end with NATS and workers, each a process of its own with the null backend; or, with no workers, one server that does it all. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { NatsCluster } from '../../tests/support/nats/nats-cluster.ts';
import { startServeProcess } from '../../tests/support/serve-process.ts';
import { until } from '../../tests/support/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../../tests/support/worker-process.ts';
import { processorMs } from '../processor-time.ts';

export interface ServiceOptions {
  readonly dir: string;
  readonly workers: number;
  readonly slotsPerWorker: number;
}

/** In milliseconds of the wall clock, which all processes share. */
export interface DispatchTimes {
  /** From the moment at which it was given its place until the backend of a worker executes it. */
  readonly dispatchMs: number;
  /** From its acceptance until its agent has begun, which is durable by then. */
  readonly acceptedMs: number;
}

interface EventsPage {
  readonly events: readonly {
    readonly type: string;
    readonly at: string;
    readonly payload: { readonly stage?: string };
  }[];
}

/** Processor time so far. */
export interface Spent {
  readonly frontEndMs: number;
  /** Of all of them. */
  readonly workersMs: number;
  readonly natsMs: number;
}

export class ScaledService implements AsyncDisposable {
  readonly url: string;
  readonly #sights: string;
  readonly #pids: Readonly<Record<keyof Spent, readonly number[]>>;
  readonly #stack: AsyncDisposableStack;

  static async start({ dir, workers, slotsPerWorker }: ServiceOptions): Promise<ScaledService> {
    const stack = new AsyncDisposableStack();
    try {
      const nats = workers === 0 ? null : stack.use(await NatsCluster.start());
      const common = ['--backend', 'null', ...(nats === null ? [] : ['--queue', nats.url])];
      const places = Math.max(1, workers) * slotsPerWorker;
      const folder = async (name: string): Promise<string> => {
        await mkdir(path.join(dir, name), { recursive: true });
        return path.join(dir, name);
      };
      const sights = path.join(dir, 'sights');
      await writeFile(sights, '');
      const noted = {
        variables: { SCALE_SIGHTS: sights },
        nodeArgs: ['--import', path.join(import.meta.dirname, 'note-executions.ts')],
      };
      const frontEnd = stack.use(
        await startServeProcess(
          [...common, '--max-concurrent', String(places), '--max-queue-depth', '1000000'],
          { stateDir: await folder('front-end'), ...noted },
        ),
      );
      const started: WorkerProcess[] = [];
      for (let index = 1; index <= workers; index += 1)
        started.push(
          stack.use(
            await startWorkerProcess(
              [
                ...[...common, '--max-concurrent', String(slotsPerWorker)],
                ...['--queue-host-name', `w${index}`],
              ],
              { stateDir: await folder(`w${index}`), ...noted },
            ),
          ),
        );
      const pidOf = ({ child }: Pick<WorkerProcess, 'child'>): number => child.pid ?? 0;
      const service = new ScaledService({ url: frontEnd.url, sights }, stack, {
        frontEndMs: [pidOf(frontEnd)],
        workersMs: started.map(pidOf),
        natsMs: nats?.nodes.map(({ pid }) => pid ?? 0) ?? [],
      });
      await until('all workers', async () => (await service.#hosts()) === workers, { everyMs: 20 });
      return service;
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
  }

  private constructor(
    { url, sights }: { readonly url: string; readonly sights: string },
    stack: AsyncDisposableStack,
    pids: Readonly<Record<keyof Spent, readonly number[]>>,
  ) {
    this.url = url;
    this.#sights = sights;
    this.#stack = stack;
    this.#pids = pids;
  }

  spent(): Spent {
    const of = (pids: readonly number[]): number =>
      pids.reduce((sum, pid) => sum + processorMs(pid), 0);
    const { frontEndMs, workersMs, natsMs } = this.#pids;
    return { frontEndMs: of(frontEndMs), workersMs: of(workersMs), natsMs: of(natsMs) };
  }

  /** Of rollouts that have ended. */
  async dispatchTimes(ids: readonly string[]): Promise<readonly DispatchTimes[]> {
    const sights = (await readFile(this.#sights, 'utf8')).split('\n');
    const executedAt = new Map(
      sights.map((line) => line.split(' ')).map(([id = '', at]) => [id, Number(at)]),
    );
    const times: DispatchTimes[] = [];
    for (const id of ids) {
      const answer = await fetch(`${this.url}/api/v1/events?rollout=${id}`);
      const { events } = (await answer.json()) as EventsPage;
      const at = (type: string, stage?: string): number => {
        const event = events.find((one) => one.type === type && one.payload.stage === stage);
        return event === undefined ? Number.NaN : Date.parse(event.at);
      };
      const dispatchMs = (executedAt.get(id) ?? Number.NaN) - at('rollout:started');
      const acceptedMs = at('rollout:stage', 'running agent') - at('rollout:queued');
      if (Number.isNaN(dispatchMs + acceptedMs)) throw new Error(`${id} was not seen at work`);
      times.push({ dispatchMs, acceptedMs });
    }
    return times;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #hosts(): Promise<number> {
    const health = (await (await fetch(`${this.url}/health`)).json()) as {
      readonly hosts?: readonly unknown[];
    };
    return health.hosts?.length ?? 0;
  }
}
