/** A plugin of Miles in Python, driven by a test: a client that behaves as the stock one, or the one that is shipped. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';

export interface PluginResult {
  readonly reward: number;
  readonly exit_status: string;
  readonly agent_metrics: Readonly<Record<string, unknown>>;
  readonly eval_report: Readonly<Record<string, unknown>>;
}

export interface PluginAnswer {
  readonly name: string;
  readonly status: number | null;
  readonly keys?: readonly string[];
  /** What the trainer gets; null = nothing came of it. */
  readonly result: PluginResult | null;
  readonly answer?: unknown;
}

/** Status and body of each `/flush`. */
export type Flushes = readonly (readonly [number | null, unknown])[];

export interface PluginRun {
  /** Of the session: `/v1` is put behind it. */
  readonly baseUrl: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly requestKwargs?: Readonly<Record<string, unknown>>;
}

/** `stock`: written after Miles' Harbor plugin. `slipway_miles`: ours. */
export type PluginKind = 'stock' | 'slipway_miles';

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const programs: Readonly<Record<PluginKind, readonly string[]>> = {
  stock: [pathOf('miles-plugin.py')],
  slipway_miles: [pathOf('slipway-miles-plugin.py'), pathOf('../../python')],
};

export class MilesPlugin implements AsyncDisposable {
  readonly answers = new Map<string, PluginAnswer>();
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #aborts: Flushes[] = [];
  readonly #exit: Promise<unknown>;
  #errors = '';

  /** `variables` as the trainer has them: AGENT_SERVER_URL, HARBOR_ADMIN_SECRET. */
  constructor(variables: Readonly<Record<string, string>>, kind: PluginKind = 'stock') {
    this.#process = spawn('python3', ['-B', ...programs[kind]], {
      env: { PATH: process.env['PATH'], ...variables },
      stdio: 'pipe',
    });
    this.#exit = once(this.#process, 'exit');
    this.#process.stderr.on('data', (piece: Buffer) => (this.#errors += piece.toString()));
    createInterface(this.#process.stdout).on('line', (line) => {
      const said = JSON.parse(line) as PluginAnswer | { readonly abort: Flushes };
      if ('abort' in said) this.#aborts.push(said.abort);
      else this.answers.set(said.name, said);
    });
  }

  run(name: string, { baseUrl, metadata, requestKwargs = {} }: PluginRun): void {
    this.#order({
      ...{ op: 'run', name, base_url: baseUrl, metadata },
      request_kwargs: requestKwargs,
    });
  }

  /** What `/flush` answered, one for each instance. */
  async abort(args: Readonly<Record<string, unknown>>): Promise<Flushes> {
    const number = this.#aborts.length;
    this.#order({ op: 'abort', args });
    await until('an answer to the flush', () => this.#aborts.length > number);
    return this.#aborts[number] ?? [];
  }

  hangUp(name: string): void {
    this.#order({ op: 'hang up', name });
  }

  /** Waits for the answers of these trials. */
  async all(names: readonly string[]): Promise<readonly PluginAnswer[]> {
    await until(`answers for ${names.join(', ')}`, () =>
      names.every((name) => this.answers.has(name)),
    );
    assert.equal(this.#errors, '');
    return names.flatMap((name) => this.answers.get(name) ?? []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exit;
  }

  #order(order: object): void {
    this.#process.stdin.write(`${JSON.stringify(order)}\n`);
  }
}
