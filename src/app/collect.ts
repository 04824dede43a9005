/** `slipway collect`: batches of groups from a rollout server, as a trainer would ask for them, handed to whoever writes them. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { RouterFleet } from '../collector/abort/router-fleet.ts';
import { defaultCauses } from '../collector/cause-policy.ts';
import type { CollectorParts } from '../collector/collector-parts.ts';
import { readPosition, writePosition } from '../collector/dataset/position-file.ts';
import { readDataset } from '../collector/dataset/read-dataset.ts';
import { openDriver } from '../collector/drivers/open-driver.ts';
import type { CollectorObserver } from '../collector/events.ts';
import { rewardSpread } from '../collector/filters/reward-spread.ts';
import { collectorBegin, GroupSource } from '../collector/group-source.ts';
import type { CollectorHooks } from '../collector/hooks.ts';
import { compileCollectorOptions } from '../collector/options.ts';
import { batchLine, groupLine } from '../collector/output/collected-lines.ts';
import { loadFunction, readPluginReference } from '../collector/plugins/plugin-reference.ts';
import { rewardByType } from '../collector/rewards/reward-by-type.ts';
import { ServerRollouts } from '../collector/server/server-rollouts.ts';
import { camelCased } from '../config/camel-cased.ts';
import { keyOf, type CollectConfig } from '../config/collect/collect-config.ts';
import { boundary } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { Scope } from '../core/scope.ts';
import { loadVocabulary } from '../engines/server/vocabulary/load-vocabulary.ts';
import type { CollectedBatchLine } from '../wire/api/collected-lines.ts';
import type { AppPorts } from './ports.ts';

export type { CollectorEvent } from '../collector/events.ts';
export type { DroppedGroup } from '../collector/group.ts';

export interface CollectRequest {
  readonly config: CollectConfig;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly observe: CollectorObserver;
  /** Before anything is started. */
  readonly onBegin: (plan: CollectPlan) => void;
  /** The groups of a batch, one line of JSON each. They must be kept when it resolves: the position is written then. */
  readonly onGroups: (lines: readonly string[], batch: number) => Promise<void>;
  /** When the rest of the batch is gone. */
  readonly onBatch: (line: CollectedBatchLine) => Promise<void>;
}

export interface CollectPlan {
  readonly rows: number;
  readonly skippedLines: number;
  /** null = as many as the dataset gives. */
  readonly batches: number | null;
  readonly batchGroups: number;
  readonly startGroups: number;
  readonly groupSize: number;
  /** Groups that an earlier run took and did not hand over. */
  readonly openGroups: number;
}

/** Ends with what runs aborted. Rejects with the reason of the signal when that fired. How many batches there were. */
export async function collectBatches(request: CollectRequest, ports: AppPorts): Promise<number> {
  const { config, signal } = request;
  await using scope = new Scope();
  const parts = await collectorParts(request, { ports, scope });
  const asynchronous = camelCased(config.asynchronous);
  const runName = `collect-${randomUUID().slice(0, 13)}`;
  const { driver } = openDriver({ driver: config.driver, asynchronous, runName }, parts);
  scope.defer(async () => {
    await driver.stop('stopped');
  });
  const file = positionFile(config);
  let index = 0;
  for (; config.batches === null || index < config.batches; index += 1) {
    const batch = await driver.collect(signal);
    if (batch === null) break;
    const lines = batch.groups.map((group) => `${JSON.stringify(groupLine(group, index))}\n`);
    await request.onGroups(lines, index);
    if (file !== null) await writePosition(file, parts.source.position);
    await request.onBatch(await batchLine(batch, index));
  }
  return index;
}

async function collectorParts(
  { config, signal, logger, observe, onBegin }: CollectRequest,
  { ports, scope }: { readonly ports: AppPorts; readonly scope: Scope },
): Promise<CollectorParts> {
  const { dataset, server, model, engines, rollouts } = config;
  const { host, port: listenPort, public_url: publicUrl } = config.listen;
  const { variables } = ports.machine;
  const options = compileCollectorOptions(camelCased(config.collector));
  const serverKey = keyOf(server, { name: 'server', variables });
  const modelKey = keyOf(model, { name: 'model', variables });
  const apiKey = keyOf(engines, { name: 'engines', variables });
  const hooks = await readHooks(config);
  const file = path.resolve(config.baseDir, dataset.file);
  const { rows, skippedLines } = await readDataset(file, dataset, signal);
  const place = positionFile(config);
  const from = place === null ? collectorBegin : await readPosition(place);
  const source = new GroupSource(rows, {
    ...{ groupSize: options.groupSize, from },
    ...{ shuffleSeed: dataset.shuffle_seed, epochs: dataset.epochs },
  });
  // What cannot be kept is said before anything has run.
  if (place !== null) await keepPosition(place, source);
  onBegin({
    ...{ rows: rows.length, skippedLines, batches: config.batches },
    ...{ batchGroups: options.batchGroups, startGroups: options.startGroups },
    ...{ groupSize: options.groupSize, openGroups: from.open.length },
  });
  const port = new ServerRollouts({
    ...{ serverUrl: server.url, serverKey, modelUrl: model?.url ?? '', modelKey },
    ...{ train: rollouts.train, isGraded: rollouts.graded },
    agentTimeoutSec: rollouts.agent_timeout_sec,
    graderTimeoutSec: rollouts.grader_timeout_sec,
    ...{ watchMs: 1_000, patienceMs: 300_000, clock: ports.clock, fetch },
    listen: { host, port: listenPort, ...(publicUrl !== null && { publicUrl }) },
    onSilence: (minutes, problem) =>
      logger.log('warn', `the server has not answered for ${minutes} min: ${problem}`),
  });
  scope.defer(() => port.close());
  await port.reach(signal);
  const fleet =
    engines === null
      ? null
      : new RouterFleet({
          ...{ routerUrl: engines.router_url, engineUrls: engines.urls, kind: engines.kind },
          ...{ apiKey, open: ports.openEngine },
        });
  if (fleet !== null) scope.defer(() => fleet.close());
  return {
    ...{ options, source, rollouts: port, fleet, hooks, causes: defaultCauses, observe, logger },
    findHook: () => Promise.resolve(port.abort),
    weightVersion: () => null,
    clock: ports.clock,
  };
}

function positionFile({ position, baseDir }: CollectConfig): string | null {
  return position === null ? null : path.resolve(baseDir, position);
}

async function keepPosition(file: string, source: GroupSource): Promise<void> {
  await boundary(
    { code: 'CONFIG_INVALID', phase: 'config', what: `writing the position ${file}` },
    async () => await writePosition(file, source.position),
  );
}

async function readHooks(config: CollectConfig): Promise<CollectorHooks> {
  const { member_reward, group_reward, group_filter, sample_filter } = config.hooks;
  const load = async <Hook>(text: string | null): Promise<Hook | undefined> => {
    if (text === null) return undefined;
    const reference = readPluginReference(path.resolve(config.baseDir, text));
    return (await loadFunction(reference)) as Hook;
  };
  const memberReward =
    (await load<CollectorHooks['memberReward']>(member_reward)) ?? (await typedReward(config));
  const groupReward = await load<CollectorHooks['groupReward']>(group_reward);
  const groupFilter =
    group_filter === 'reward_spread'
      ? rewardSpread
      : await load<CollectorHooks['groupFilter']>(group_filter);
  const sampleFilter = await load<CollectorHooks['sampleFilter']>(sample_filter);
  return {
    ...(memberReward && { memberReward }),
    ...(groupReward && { groupReward }),
    ...(groupFilter && { groupFilter }),
    ...(sampleFilter && { sampleFilter }),
  };
}

async function typedReward({
  rewards,
  baseDir,
}: CollectConfig): Promise<CollectorHooks['memberReward']> {
  if (rewards === null) return undefined;
  const { type, tokenizer, key, url, timeout_sec: limit, attempts } = rewards;
  const file = tokenizer === null ? null : path.resolve(baseDir, tokenizer);
  return rewardByType({
    ...{ type, key, custom: null, random: Math.random, vocabulary: await loadVocabulary(file) },
    remote: url === null ? null : { url, timeoutMs: 1_000 * limit, attempts, pauseMs: 500, fetch },
  });
}
