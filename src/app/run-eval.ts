/**
 * `slipway eval run`: check the configuration and the whole dataset → find what was done before → ask → start or reach the server → run what is pending →
 * write the numbers. Everything that is known stands in the evaluation's journal; the other files are made from it.
 */
import { rm } from 'node:fs/promises';
import type { EvalConfig } from '../config/eval/read-eval-config.ts';
import { readSecrets } from '../config/serve/read-secrets.ts';
import { boundary, type RolloutError } from '../core/errors.ts';
import { Scope } from '../core/scope.ts';
import { SecretMask } from '../telemetry/secret-mask.ts';
import { Dataset } from './eval/dataset.ts';
import { EvalDispatch } from './eval/eval-dispatch.ts';
import { maskedEvent, type EvalEvent } from './eval/eval-events.ts';
import { EvalFolder } from './eval/eval-folder.ts';
import { EvalItems, type EvalItem } from './eval/eval-items.ts';
import { EvalJournal } from './eval/eval-journal.ts';
import { EvalLog } from './eval/eval-log.ts';
import { checkOwnServer } from './eval/check-own-server.ts';
import { checkManifest, makeManifest } from './eval/eval-manifest.ts';
import { evalMetrics, failureOf, type EvalMetrics } from './eval/eval-metrics.ts';
import { EvalProgress } from './eval/eval-progress.ts';
import {
  ownServerConfig,
  reachServer,
  startOwnServer,
  type EvalServer,
} from './eval/eval-server.ts';
import { probeModel } from './eval/model-probe.ts';
import { takeUpOwn } from './eval/own-archive.ts';
import { readRowSelection } from './eval/row-selection.ts';
import { sourceDigest } from './eval/source-digest.ts';
import { taskDigests } from './eval/task-digests.ts';
import type { AppPorts } from './ports.ts';

export { failureOf, type EvalItem, type EvalMetrics };

export interface EvalPlan {
  readonly dir: string;
  readonly dataset: string;
  readonly mode: string;
  readonly rows: number;
  readonly repeats: number;
  readonly pending: number;
  readonly model: string | null;
  readonly server: string;
  readonly atOnce: number | null;
  readonly itemTimeoutMs: number;
}

export interface EvalRequest {
  readonly config: EvalConfig;
  /** `--rows`. */
  readonly rows: string | null;
  readonly isFresh: boolean;
  readonly retriesFailed: boolean;
  readonly maxInFlight: number | null;
  /** Beside those that the configuration names, for the masks of what is written. */
  readonly secrets: readonly string[];
  /** Asked before anything is run or changed. */
  readonly confirm: (plan: EvalPlan) => Promise<boolean>;
  /** The items, which change from now on. */
  readonly onBegin: (items: readonly EvalItem[]) => void;
  /** It has ended. */
  readonly onItem: (item: EvalItem) => void;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface EvalOutcome {
  readonly dir: string;
  readonly items: readonly EvalItem[];
  readonly metrics: EvalMetrics;
  /** Why nothing more was begun; null = nothing stopped it. */
  readonly halted: RolloutError | null;
  /** How many had ended in an earlier life. */
  readonly resumed: number;
}

/** null = not confirmed. CONFIG_INVALID, DATASET_EMPTY, JOB_CONFLICT, STORE_LOCKED, and what starting a server or asking the model says. */
export async function runEval(request: EvalRequest, ports: AppPorts): Promise<EvalOutcome | null> {
  const { config, signal, note } = request;
  const { clock } = ports;
  const folder = new EvalFolder(config.outputDir, config.name);
  const serverDir = folder.path('server');
  const serve = config.serverUrl === null ? ownServerConfig(config, serverDir, ports) : null;
  if (serve !== null) await checkOwnServer(serve, ports);
  const keys = await readKeys(config, ports);
  const secrets = [
    ...request.secrets,
    ...config.requiredSecrets.map((name) => ports.machine.variables[name] ?? ''),
  ];
  const mask = new SecretMask();
  mask.add([...keys.all, ...secrets]);

  await using scope = new Scope();
  const dataset = await Dataset.open({
    ...{ file: config.datasetFile, mode: config.mode, signal },
    isChosen: request.rows === null ? () => true : readRowSelection(request.rows),
    limit: request.rows === null ? config.limit : null,
  });
  scope.defer(() => dataset[Symbol.asyncDispose]());
  const lock = folder.lock(ports.locks);
  scope.defer(() => {
    lock.release();
    return Promise.resolve();
  });

  const { cwd } = ports.machine;
  const made = makeManifest(config, dataset, {
    sourceSha256: await sourceDigest(config),
    tasks: serve === null ? {} : await taskDigests(serve, { dataset, cwd, signal }),
    now: clock.now(),
  });
  const before = await folder.manifest();
  const found = request.isFresh ? null : before;
  const manifest = found === null ? made : checkManifest(found, made, folder.dir);
  const items = new EvalItems(dataset.size, config.repeats);
  let journal: EvalJournal | null = null;
  const openJournal = async (): Promise<EvalJournal> => {
    const opened = await EvalJournal.open(folder.path('events.jsonl'), (event) =>
      items.apply(event),
    );
    scope.defer(() => opened[Symbol.asyncDispose]());
    return opened;
  };
  if (found !== null) journal = await openJournal();
  for (const item of items.all) item.isResumed = item.ended !== null;
  const isToRun = (item: EvalItem): boolean =>
    item.ended === null || (request.retriesFailed && item.ended.status === 'failed');

  const plan: EvalPlan = {
    ...{ dir: folder.dir, dataset: dataset.file, mode: dataset.mode },
    ...{ rows: dataset.size, repeats: config.repeats },
    pending: items.all.filter(isToRun).length,
    model: config.modelUrl === null ? null : new URL(config.modelUrl).origin,
    server: config.serverUrl === null ? 'in this process' : new URL(config.serverUrl).origin,
    atOnce: request.maxInFlight ?? config.batchSize ?? serve?.admission.maxConcurrent ?? null,
    itemTimeoutMs: config.itemTimeoutMs,
  };
  if (!(await request.confirm(plan))) return null;

  if (request.isFresh) {
    const moved = await folder.archive(clock.now());
    if (moved !== null) note(`what was there is now in ${moved}`);
  }
  await folder.make();
  if (JSON.stringify(found) !== JSON.stringify(manifest))
    await folder.writeJson('manifest.json', manifest);
  journal ??= await openJournal();
  const log = new EvalLog(folder.path('logs.txt'), { mask, clock });
  scope.defer(() => log[Symbol.asyncDispose]());
  const writes = journal;
  const record = async (event: EvalEvent): Promise<void> => {
    const masked = maskedEvent(event, (text) => mask.mask(text));
    await writes.append(masked);
    items.apply(masked);
    log.write(eventText(masked));
  };
  const at = (): string => clock.now().toISOString();
  const left = items.all.flatMap(({ state, rolloutId }) =>
    state === 'running' && rolloutId !== null ? [rolloutId] : [],
  );
  for (const item of items.all.filter(isToRun))
    if (item.rolloutId !== null && item.state !== 'pending')
      await record({
        type: 'item:returned',
        ...{ row_index: item.rowIndex, run_index: item.runIndex, rollout_id: item.rolloutId },
        ...{
          at: at(),
          reason: item.state === 'running' ? 'the process had ended' : '--retry-failed',
        },
      });
  const resumed = items.all.filter(({ ended }) => ended !== null);
  for (const item of items.all) item.isResumed = item.ended !== null;

  const settings = { passThreshold: config.passThreshold, repeats: config.repeats };
  const progress = new EvalProgress(folder, { items: items.all, clock });
  const pending = items.all.filter(({ state }) => state === 'pending');
  let halted: RolloutError | null = null;
  request.onBegin(items.all);
  const finish = async (): Promise<void> => {
    await progress.close();
    await rm(folder.path('.partial'), { recursive: true, force: true });
    await folder.writeReports(items.all, evalMetrics(items.all, settings), (row) =>
      dataset.datasetRow(row),
    );
  };
  try {
    const say = (text: string): void => {
      log.write(text);
      note(mask.mask(text));
    };
    const lacking = items.all.filter(({ ended, kept }) => ended !== null && kept === null);
    if (serve !== null)
      await takeUpOwn(lacking, { dataDir: serverDir, folder, clock, record, note: say });
    const wantsServer = pending.length > 0 || (serve === null && lacking.length > 0);
    if (wantsServer) {
      await record({ type: 'run:started', at: at(), pid: process.pid });
      const model = config.modelUrl === null ? null : { url: config.modelUrl, key: keys.model };
      const problem = model === null ? null : await probeModel(model, signal);
      if (problem !== null) throw problem;
      await using server = await openServer(request, { ports, serve, key: keys.server, secrets });
      const dispatch = new EvalDispatch({
        ...{ config, dataset, folder, server, model, clock, record, note: say },
        onItem: (item) => {
          progress.show();
          request.onItem(item);
        },
      });
      if (serve === null) await dispatch.takeUp(lacking, left);
      const asked = request.maxInFlight ?? config.batchSize ?? server.capacity ?? 1;
      const concurrency = Math.min(asked, server.capacity ?? asked);
      halted = await dispatch.run(pending, { concurrency, signal });
    }
  } catch (error) {
    // What stopped it is told, and not that on a full disk its numbers could not be written either.
    await finish().catch(() => undefined);
    throw error;
  }
  await boundary({ code: 'JOURNAL_FAILED', phase: 'queue', what: folder.dir }, finish);
  const metrics = evalMetrics(items.all, settings);
  return { dir: folder.dir, items: items.all, metrics, halted, resumed: resumed.length };
}

async function openServer(
  { config, signal }: EvalRequest,
  {
    ports,
    serve,
    key,
    secrets,
  }: {
    readonly ports: AppPorts;
    readonly serve: ReturnType<typeof ownServerConfig> | null;
    readonly key: string | null;
    readonly secrets: readonly string[];
  },
): Promise<EvalServer & AsyncDisposable> {
  const server =
    serve === null
      ? await reachServer({ url: config.serverUrl ?? '', key }, signal)
      : await startOwnServer(serve, { ports, secrets, signal });
  return { ...server, [Symbol.asyncDispose]: () => server.stop() };
}

interface Keys {
  readonly model: string | null;
  readonly server: string | null;
  readonly all: readonly string[];
}

async function readKeys(config: EvalConfig, { machine }: AppPorts): Promise<Keys> {
  const places = {
    ...(config.modelKey !== null && { 'model.key': [config.modelKey] }),
    ...(config.serverKey !== null && { server_key: [config.serverKey] }),
  };
  const sources = { variables: machine.variables, baseDir: config.baseDir };
  const found: Readonly<Record<string, readonly string[]>> = await readSecrets(places, sources);
  return {
    model: found['model.key']?.[0] ?? null,
    server: found['server_key']?.[0] ?? null,
    all: Object.values(found).flat(),
  };
}

function eventText(event: EvalEvent): string {
  if (event.type === 'run:started') return `run:started pid ${event.pid}`;
  const { type, row_index: row, run_index: run, rollout_id: id } = event;
  const more =
    event.type === 'item:ended'
      ? ` ${event.status} reward ${event.reward ?? '-'} ${event.error_type ?? ''} ${event.err_message ?? ''}`
      : event.type === 'item:returned'
        ? ` ${event.reason}`
        : '';
  return `${type} row ${row} run ${run} ${id}${more}`.replace(/\s+/g, ' ').trimEnd();
}
