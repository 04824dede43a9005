/** Server with processes of its gateway, engine and `slipway collect`, each a process that can be killed and stopped, and comes again at the same address. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startEngineProcess, type EngineProcess } from '../../support/engine-process.ts';
import { lastingPorts } from '../../support/lasting-ports.ts';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';

export const groupSize = 4;
export const batchGroups = 8;

export class StormStack implements AsyncDisposable {
  readonly dir: string;
  readonly engineLog: string;
  readonly output: string;
  server: ServeProcess;
  engine: EngineProcess;
  collector: ChildProcess | null = null;
  #isOver = false;
  #collecting: Promise<void> | null = null;
  /** What a collector said that ended by itself and not well. */
  readonly complaints: string[] = [];

  private constructor(dir: string, server: ServeProcess, engine: EngineProcess) {
    this.dir = dir;
    this.engineLog = path.join(dir, 'engine.ndjson');
    this.output = path.join(dir, 'groups.ndjson');
    this.server = server;
    this.engine = engine;
  }

  static async start(dir: string, rows: number): Promise<StormStack> {
    const engine = await startEngine(dir, await lastingPorts(1));
    const stack = new StormStack(dir, await startServer(dir, null), engine);
    writeFileSync(stack.output, '');
    const lines = Array.from({ length: rows }, (_, row) =>
      JSON.stringify({
        prompt: `row ${row}`,
        label: 'x',
        metadata: { null: { reward: 0.5, agent_calls: 1, duration_ms: (row * 37) % 400 } },
      }),
    );
    writeFileSync(path.join(dir, 'rows.jsonl'), `${lines.join('\n')}\n`);
    writeFileSync(
      path.join(dir, 'collect.toml'),
      [
        ...['position = "position.json"', '[dataset]', 'file = "rows.jsonl"'],
        ...['[server]', `url = "${stack.server.url}"`],
        ...['[model]', `url = "${engine.apiBase}"`, '[rollouts]', 'train = true'],
        ...['[collector]', `group_size = ${groupSize}`, `batch_groups = ${batchGroups}`],
        // What is lost to the faults is made anew: no group may be given up for it.
        ...['max_attempts = 1000', 'max_row_losses = 1000', ''],
      ].join('\n'),
    );
    return stack;
  }

  /** Collects batch after batch, a process each, until it is told to stop. */
  beginCollecting(): void {
    this.#collecting = this.#collect();
  }

  /** When the batch that is being collected is there. */
  async endCollecting(): Promise<void> {
    this.#isOver = true;
    await this.#collecting;
  }

  async restartServer(): Promise<void> {
    await this.server.kill();
    this.server = await startServer(this.dir, this.server);
  }

  async restartEngine(): Promise<void> {
    const { port } = this.engine;
    await this.engine.kill();
    this.engine = await startEngine(this.dir, port);
  }

  /** Processes of the gateway, as the server has noted them. */
  gatewayPids(): readonly number[] {
    const file = path.join(this.dir, 'server/gateway.json');
    return (JSON.parse(readFileSync(file, 'utf8')) as { readonly pid: number }[]).map(
      ({ pid }) => pid,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.collector?.kill('SIGKILL');
    await this.#collecting;
    await this.server[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }

  async #collect(): Promise<void> {
    while (!this.#isOver) {
      const words = ['collect', path.join(this.dir, 'collect.toml'), '-o', this.output];
      const child = spawn(
        process.execPath,
        [path.join(repositoryDir, 'bin/slipway.js'), ...words, '--batches', '3', '--quiet'],
        { stdio: ['ignore', 'ignore', 'pipe'] },
      );
      this.collector = child;
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
      const [code] = (await once(child, 'close')) as [number | null];
      this.collector = null;
      // Who begins while the server is away is told so at once, and may begin again.
      const isEarly = said.includes('SERVER_UNREACHABLE');
      if (code !== null && code !== 0 && !isEarly)
        this.complaints.push(`a collector gave up with ${code}: ${said.slice(-500)}`);
    }
  }
}

async function startEngine(dir: string, port: number): Promise<EngineProcess> {
  return await startEngineProcess(
    [
      ...['--log', path.join(dir, 'engine.ndjson'), '--latency', 'constant:150'],
      ...['--non-canonical', '0.3'],
    ],
    { port },
  );
}

async function startServer(dir: string, before: ServeProcess | null): Promise<ServeProcess> {
  // One for the control listener and one for each process of the gateway: the same ones after a restart.
  const first = before === null ? await lastingPorts(3) : Number(new URL(before.url).port);
  const ports = ['--port', String(first), '--data-port', String(first + 1)];
  const flags = ['--backend', 'null', '--gateway-workers', '2', '--max-concurrent', '32'];
  return await startServeProcess([...flags, '--max-queue-depth', '4096', ...ports], {
    stateDir: dir,
  });
}
