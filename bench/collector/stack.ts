/** Server, gateway and engine as processes, and the collector's side of them in this one. Agents are those of the null backend: what is measured is ours. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { RouterFleet } from '../../src/collector/abort/router-fleet.ts';
import { defaultCauses } from '../../src/collector/cause-policy.ts';
import type { CollectorParts } from '../../src/collector/collector-parts.ts';
import { collectorBegin, GroupSource } from '../../src/collector/group-source.ts';
import { compileCollectorOptions, type CollectorOptions } from '../../src/collector/options.ts';
import { ServerRollouts } from '../../src/collector/server/server-rollouts.ts';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { ListeningProcess } from '../server/processes.ts';

const slipway = path.resolve(import.meta.dirname, '../../bin/slipway.js');

export class Stack implements AsyncDisposable {
  readonly server: ListeningProcess;
  readonly engine: ListeningProcess;
  readonly rollouts: ServerRollouts;
  readonly fleet: RouterFleet;
  readonly #engineLog: string;

  private constructor(
    parts: { readonly server: ListeningProcess; readonly engine: ListeningProcess },
    options: { readonly train: boolean; readonly engineLog: string },
  ) {
    this.server = parts.server;
    this.engine = parts.engine;
    this.#engineLog = options.engineLog;
    this.rollouts = new ServerRollouts({
      ...{ serverUrl: this.server.url, serverKey: null, modelUrl: `${this.engine.url}/v1` },
      ...{ modelKey: null, train: options.train, isGraded: true, agentTimeoutSec: null },
      ...{
        graderTimeoutSec: null,
        listen: {},
        watchMs: 30_000,
        patienceMs: 300_000,
        clock: systemClock,
        fetch,
      },
    });
    this.fleet = new RouterFleet({
      ...{ routerUrl: this.engine.url, engineUrls: [], kind: 'sglang', apiKey: null },
      open: openEngine,
    });
  }

  static async start(
    dir: string,
    options: {
      readonly concurrency: number;
      readonly latencyMs: number;
      readonly train: boolean;
    },
  ): Promise<Stack> {
    const engineLog = path.join(dir, 'engine.ndjson');
    const { concurrency, latencyMs, train } = options;
    const engine = await ListeningProcess.start([
      ...[slipway, 'engine', '--port', '0', '--json', '--log', engineLog],
      ...['--latency', `constant:${latencyMs}`],
    ]);
    const server = await ListeningProcess.server(
      ...[path.join(dir, 'data'), '--max-concurrent', String(concurrency)],
      ...['--max-queue-depth', '4096'],
    );
    return new Stack({ server, engine }, { train, engineLog });
  }

  /** Of a collector in this process. `metadata.null` of a row says what its agents do. */
  parts(options: CollectorOptions, metadata: readonly object[]): CollectorParts {
    const compiled = compileCollectorOptions(options);
    const rows = metadata.map((of, rowIndex) => ({
      ...{ rowIndex, label: null, metadata: { null: of } },
      messages: [{ role: 'user', content: `row ${rowIndex}` }],
    }));
    return {
      options: compiled,
      source: new GroupSource(rows, {
        ...{ groupSize: compiled.groupSize, shuffleSeed: null, epochs: null, from: collectorBegin },
      }),
      ...{ rollouts: this.rollouts, fleet: this.fleet, hooks: {}, causes: defaultCauses },
      findHook: () => Promise.resolve(this.rollouts.abort),
      ...{ weightVersion: () => null, clock: systemClock, logger: silentLogger },
      observe: () => undefined,
    };
  }

  /** When each call of the engine began and ended, in milliseconds of the epoch. */
  async calls(): Promise<readonly { readonly beganAt: number; readonly endedAt: number }[]> {
    const lines = (await readFile(this.#engineLog, 'utf8')).trimEnd().split('\n');
    return lines
      .filter((line) => line !== '')
      .map((line) => {
        const entry = JSON.parse(line) as { time: string; started_ms: number; ended_ms: number };
        const endedAt = Date.parse(entry.time);
        return { beganAt: endedAt - (entry.ended_ms - entry.started_ms), endedAt };
      });
  }

  /** When the server had ended it. */
  async endedAt(rolloutId: string): Promise<number> {
    const answer = await fetch(`${this.server.url}/api/v1/rollouts/${rolloutId}`);
    const { ended_at: ended } = (await answer.json()) as { readonly ended_at: string | null };
    return ended === null ? Number.POSITIVE_INFINITY : Date.parse(ended);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rollouts.close();
    await this.fleet.close();
    await this.server[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}
