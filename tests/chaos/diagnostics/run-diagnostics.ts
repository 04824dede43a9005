/** Runs the rows on one composed server of native rollouts, over HTTP, and reads what it told in five places. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { AgentFactory } from '../../../src/agents/agent.ts';
import { composeApp } from '../../../src/app/compose.ts';
import { startServer } from '../../../src/app/serve.ts';
import { ServerClient } from '../../../src/app/server-client.ts';
import { folderName } from '../../../src/archive/folder-name.ts';
import { RolloutController } from '../../../src/callbacks/rollout-controller.ts';
import { readServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { taskFolder } from '../../fakes/task-folder.ts';
import { until } from '../../support/until.ts';
import { answerTask } from '../../trial/trial-bench.ts';
import { MachinePerRow } from '../outcomes/machine-per-row.ts';
import { scriptedAgent } from '../outcomes/scripted-agent.ts';
import type { DiagnosticsRow } from './diagnostics-rows.ts';
import { canary, judgeDiagnostics, type DiagnosticsEvidence } from './judge-diagnostics.ts';

export interface DiagnosticsReport {
  readonly row: DiagnosticsRow;
  readonly evidence: DiagnosticsEvidence;
  readonly problems: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;

/** The agent of the other faults, which writes a trajectory as it begins. */
const recordingAgent: AgentFactory = (options) => {
  const agent = scriptedAgent(options);
  return {
    ...agent,
    hostFiles: ['trajectory.json'],
    setup: (...given) => agent.setup(...given),
    run: async (...given) => {
      await mkdir(options.logsDir, { recursive: true });
      await writeFile(
        path.join(options.logsDir, 'trajectory.json'),
        JSON.stringify({
          schema_version: 'ATIF-v1.7',
          session_id: 'of-the-agent',
          agent: { name: 'scripted', version: '1' },
          steps: [{ step_id: 1, source: 'user', message: canary }],
        }),
      );
      await agent.run(...given);
    },
  };
};

export async function runDiagnostics(
  rows: readonly DiagnosticsRow[],
): Promise<readonly DiagnosticsReport[]> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-diagnostics-'));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const provider = new MachinePerRow();
  const composed = await composeApp(
    { SLIPWAY_STATE_DIR: path.join(root, 'state'), HOME: root },
    root,
  );
  const ports = {
    ...composed,
    // In this process: its agent and its machines are here.
    composition: null,
    resolveAgent: () => Promise.resolve(recordingAgent),
    environmentNames: [],
    resolveProvider: () => Promise.resolve(provider),
  };
  const dataDir = path.join(root, 'data');
  const config = await readServeConfig(
    {
      ...{ '--port': '0', '--data-dir': dataDir, '--shutdown-drain-sec': '0' },
      ...{ '--backend': 'native', '--backend-native-environment': provider.kind },
      ...{ '--admission-pause-after-failures': '0', '--max-concurrent': '20' },
    },
    ports.machine,
  );
  const server = await startServer(config, { ports, signal: never });
  stack.defer(() => server.stop(never));
  const controller = new RolloutController({ serverUrl: server.controlUrl });
  await controller.start();
  stack.defer(() => controller.close());
  const client = new ServerClient({ url: server.controlUrl, key: null }, { fetch });
  const lastOf = new Map<DiagnosticsRow, Pick<DiagnosticsEvidence, 'api' | 'status'>>();
  const idOf = ({ name }: DiagnosticsRow): string => `${name}::1`;

  const run = async (row: DiagnosticsRow): Promise<void> => {
    const id = idOf(row);
    const files = row.files ?? answerTask;
    const task = await taskFolder(
      { ...files, 'instruction.md': `${row.agentDoes ?? 'solve'}\n` },
      row.name,
    );
    stack.use(task);
    const machine = provider.machineOf(row.name);
    if (row.fault !== undefined) {
      const { in: part = '', ...fault } = row.fault;
      machine.faults.plant({ ...fault, when: (subject) => subject.includes(part) });
    }
    const stop = new AbortController();
    const ending = controller.run(
      {
        ...{ rollout_id: id, initial_messages: [], label: 'a label' },
        chat_completions_url: 'http://127.0.0.1:9/v1',
        ...row.request,
        metadata: { harbor_task: task.dir, ...row.request?.metadata },
      },
      stop.signal,
    );
    ending.catch(() => undefined);
    const detail = async () => await client.rollout(id, never).catch(() => null);
    if (row.endedBy !== undefined)
      await until(`${id} works`, async () => (await detail())?.stage === 'running agent');
    if (row.endedBy === 'controller') stop.abort(new Error('enough'));
    if (row.endedBy === 'server') await server.stop(never);
    await ending.catch(() => undefined);
    if (row.endedBy !== 'server')
      await until(
        `${id} has ended`,
        async () => (await client.rollout(id, never)).outcome !== null,
      );
    const status = await fetch(
      `${server.controlUrl}/rollout/${encodeURIComponent(id)}/status`,
    ).catch(() => null);
    const api = row.endedBy === 'server' ? null : (await client.rollout(id, never)).outcome;
    lastOf.set(row, { api: api ?? {}, status: ((await status?.json()) ?? {}) as Json });
  };
  await Promise.all(rows.filter(({ endedBy }) => endedBy !== 'server').map(run));
  for (const row of rows.filter(({ endedBy }) => endedBy === 'server')) await run(row);
  await server.stop(never);

  const log = (await readFile(path.join(dataDir, 'logs', 'server.ndjson'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Json);
  const reports: DiagnosticsReport[] = [];
  for (const row of rows) {
    const id = idOf(row);
    const kept = path.join(dataDir, 'archive', folderName(id));
    const document = async (name: string): Promise<Json | null> =>
      await readFile(path.join(kept, name), 'utf8').then(
        (text) => JSON.parse(text) as Json,
        () => null,
      );
    const bodyOf = (channel: string): string | null =>
      controller.received(id).find((one) => one.channel === channel)?.text ?? null;
    const line = log.find((one) => one['message'] === 'rollout ended' && one['rolloutId'] === id);
    const { api, status } = lastOf.get(row) ?? { api: {}, status: {} };
    const evidence: DiagnosticsEvidence = {
      callbacks: { completion: bodyOf('completion'), grader: bodyOf('grader') },
      log: line?.['diagnostics'],
      sidecar: await document('diagnostics.json'),
      trajectory: await document('trajectory.json'),
      // A server that was stopped answers nothing; its archive has the same outcome.
      api: row.endedBy === 'server' ? ((await document('outcome.json')) ?? {}) : api,
      status,
    };
    reports.push({ row, evidence, problems: judgeDiagnostics(row, evidence) });
  }
  return reports;
}
