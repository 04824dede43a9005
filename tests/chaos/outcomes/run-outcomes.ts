/** Runs the rows of faults on composed rollout servers, over HTTP, and judges what was said of each. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { ServerResponse } from 'node:http';
import { composeApp } from '../../../src/app/compose.ts';
import { ServerClient } from '../../../src/app/server-client.ts';
import { startServer } from '../../../src/app/serve.ts';
import { RolloutController } from '../../../src/callbacks/rollout-controller.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { taskFolder } from '../../fakes/task-folder.ts';
import { until } from '../../support/until.ts';
import { answerTask } from '../../trial/trial-bench.ts';
import { judgeOutcome } from './judge-outcome.ts';
import { MachinePerRow } from './machine-per-row.ts';
import type { EngineAnswer, OutcomeEvidence, OutcomeRow } from './outcome-row.ts';
import { scriptedAgent } from './scripted-agent.ts';

export interface OutcomeReport {
  readonly row: OutcomeRow;
  readonly evidence: OutcomeEvidence;
  readonly problems: readonly string[];
}

export interface RunOutcomesOptions {
  readonly rows: readonly OutcomeRow[];
  /** Rollouts at once, per server. */
  readonly concurrency: number;
  readonly onReport?: (report: OutcomeReport) => void;
}

const kinds = ['native', 'local', 'crowded', 'sandbox', 'terminus'] as const;

export async function runOutcomes(options: RunOutcomesOptions): Promise<readonly OutcomeReport[]> {
  const reports: OutcomeReport[] = [];
  await using bench = await OutcomeBench.open();
  for (const kind of kinds) {
    const rows = options.rows.filter(({ server }) => server === kind);
    if (rows.length === 0) continue;
    await using server = await bench.start(kind, options.concurrency);
    const queue = rows.values();
    const work = async (): Promise<void> => {
      for (const row of queue) {
        const evidence = await server.run(row);
        const report = { row, evidence, problems: judgeOutcome(row, evidence) };
        reports.push(report);
        options.onReport?.(report);
      }
    };
    const workers = kind === 'crowded' ? 1 : options.concurrency;
    await Promise.all(Array.from({ length: workers }, work));
  }
  return reports;
}

/** The crowd is one rollout, which never ends. */
const crowdId = 'the-crowd';
const userCode = path.resolve(import.meta.dirname, '../../backends/local/user-code.ts');
const localFlags = {
  '--backend': 'local',
  '--backend-local-workflow': `${userCode}:Workflow`,
  '--backend-local-grader': `${userCode}:TestGrader`,
  '--backend-local-memory-mb': '64',
};

const sandboxFlags = { '--backend': 'native', '--backend-native-environment': 'local' };
/** terminus-2 asks again; here at once. */
const terminusFlags = {
  ...sandboxFlags,
  '--backend-native-agent-options': JSON.stringify({
    ...{ retry_min_wait_sec: 0, retry_max_wait_sec: 0, record_terminal_session: false },
  }),
};

class OutcomeBench implements AsyncDisposable {
  readonly root: string;
  readonly provider = new MachinePerRow();
  readonly upstream: ChatUpstream;

  private constructor(root: string, upstream: ChatUpstream) {
    this.root = root;
    this.upstream = upstream;
  }

  static async open(): Promise<OutcomeBench> {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-outcomes-'));
    const upstream = await ChatUpstream.start((response, { url }) =>
      answer(response, (url.split('/')[1] ?? '') as EngineAnswer),
    );
    return new OutcomeBench(root, upstream);
  }

  async start(kind: OutcomeRow['server'], concurrency: number): Promise<OutcomeServer> {
    const { ports, flags } = await this.#wiring(kind);
    const config = await readServeConfig(
      {
        ...{ '--port': '0', '--data-dir': path.join(this.root, kind) },
        ...{ '--shutdown-drain-sec': '0', '--admission-pause-after-failures': '0' },
        '--max-concurrent': String(kind === 'crowded' ? 1 : concurrency),
        '--max-queue-depth': '4',
        ...flags,
      },
      ports.machine,
    );
    const running = await startServer(config, { ports, signal: never });
    const controller = new RolloutController({ serverUrl: running.controlUrl });
    await controller.start();
    const server = new OutcomeServer(this, {
      url: running.controlUrl,
      controller,
      stop: () => running.stop(never),
    });
    if (kind === 'crowded') await server.crowd(crowdId);
    return server;
  }

  async #wiring(kind: OutcomeRow['server']) {
    const own = { SLIPWAY_STATE_DIR: path.join(this.root, 'state') };
    const isReal = kind === 'sandbox' || kind === 'terminus';
    const variables = isReal ? { ...process.env, ...own } : { ...own, HOME: this.root };
    const composed = await composeApp(variables, this.root);
    const scripted = {
      ...composed,
      composition: null,
      resolveAgent: () => Promise.resolve(scriptedAgent),
    };
    if (kind === 'terminus') return { ports: composed, flags: terminusFlags };
    if (kind === 'sandbox') return { ports: scripted, flags: sandboxFlags };
    const ports = {
      ...scripted,
      environmentNames: [],
      resolveProvider: () => Promise.resolve(this.provider),
    };
    const inMemory = { ...sandboxFlags, '--backend-native-environment': this.provider.kind };
    return { ports, flags: kind === 'native' ? inMemory : localFlags };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstream[Symbol.asyncDispose]();
    await rm(this.root, { recursive: true, force: true });
  }
}

class OutcomeServer implements AsyncDisposable {
  readonly #bench: OutcomeBench;
  readonly #url: string;
  readonly #controller: RolloutController;
  readonly #client: ServerClient;
  readonly #stop: () => Promise<void>;
  #crowd: Promise<unknown> | null = null;

  constructor(
    bench: OutcomeBench,
    parts: {
      readonly url: string;
      readonly controller: RolloutController;
      readonly stop: () => Promise<void>;
    },
  ) {
    this.#bench = bench;
    this.#url = parts.url;
    this.#controller = parts.controller;
    this.#stop = parts.stop;
    this.#client = new ServerClient({ url: parts.url, key: null }, { fetch });
  }

  async run(row: OutcomeRow): Promise<OutcomeEvidence> {
    const id = `${row.name}::1`;
    await using task = await taskFolder(filesOf(row), row.name);
    const machine = this.#bench.provider.machineOf(row.name);
    if (row.fault !== undefined) {
      const { in: part = '', ...fault } = row.fault;
      machine.faults.plant({ ...fault, when: (subject) => subject.includes(part) });
    }
    const request = {
      rollout_id: id,
      initial_messages: [],
      label: 'a label',
      chat_completions_url: `${this.#bench.upstream.url}/${row.engine ?? 'well'}/v1`,
      llm_api_key: 'the-key-of-the-model',
      ...row.request,
      metadata: { harbor_task: task.dir, ...row.request?.metadata },
    };
    if (row.request?.metadata !== undefined && Object.keys(row.request.metadata).length === 0)
      request.metadata = {} as typeof request.metadata;
    if (row.isDeaf === true) await this.#submitDeaf(request);
    else await this.#controller.run(request);
    await until(`${row.name} has ended`, async () => (await this.#detail(id)).outcome !== null);
    const { outcome, callbacks } = await this.#detail(id);
    const status = await fetch(`${this.#url}/rollout/${encodeURIComponent(id)}/status`);
    return {
      api: outcome ?? {},
      status: (await status.json()) as Readonly<Record<string, unknown>>,
      callbacks: this.#controller
        .received(id)
        .map(({ channel, key, text }) => ({ channel, key, text })),
      deliveries: Object.fromEntries(callbacks.map(({ channel, state }) => [channel, state])),
    };
  }

  /** Takes the one running place. */
  async crowd(id: string): Promise<void> {
    const metadata = { act: 'sleeps' };
    this.#crowd = this.#controller.run({ rollout_id: id, initial_messages: [], metadata });
    this.#crowd.catch(() => undefined);
    await until('the place is taken', async () => (await this.#detail(id)).state === 'running');
  }

  async #detail(id: string) {
    return await this.#client.rollout(id, never);
  }

  async #submitDeaf(request: object): Promise<void> {
    const nobody = 'http://127.0.0.1:9';
    const urls = {
      completion_callback_url: `${nobody}/completion`,
      grader_callback_url: `${nobody}/grader`,
    };
    const answered = await fetch(`${this.#url}/rollout`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...request, ...urls }),
    });
    if (answered.status !== 202) throw new Error(`refused with ${answered.status}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    await this.#controller.close();
    await this.#crowd?.catch(() => undefined);
  }
}

function instructionOf({ command, agentDoes }: OutcomeRow): string {
  return command === undefined ? (agentDoes ?? 'solve') : `command ${command}`;
}

function filesOf(row: OutcomeRow) {
  const files = row.files ?? answerTask;
  return 'instruction.md' in files
    ? { ...files, 'instruction.md': `${instructionOf(row)}\n` }
    : files;
}

const refusals: Readonly<Record<string, readonly [status: number, message: string]>> = {
  'status-500': [500, 'the engine broke'],
  'status-429': [429, 'slow down'],
  'status-401': [401, 'a wrong key'],
  overflow: [400, "This model's maximum context length is 10 tokens"],
};

async function answer(response: ServerResponse, how: EngineAnswer): Promise<void> {
  const refusal = refusals[how];
  if (refusal !== undefined) {
    const [status, message] = refusal;
    const code = how === 'overflow' ? 'context_length_exceeded' : null;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message, code, type: 'invalid_request_error' } }));
  } else if (how === 'well') {
    const message = { role: 'assistant', content: 'done' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ id: 'x', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
    );
  } else if (how === 'garbage') {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('<html>a proxy</html>');
  } else if (how === 'cut') response.destroy();
  await Promise.resolve();
}
