/**
 * The collections of a server. Their collectors talk to it over HTTP as any trainer does, with a key of their own in the name of whoever asked; their callbacks come back
 * to a listener of this process, which the rules for callbacks let pass.
 */
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { RouterFleet } from '../../collector/abort/router-fleet.ts';
import { defaultCauses } from '../../collector/cause-policy.ts';
import {
  datasetRows,
  readDataset,
  sliceOf,
  type ReadDataset,
} from '../../collector/dataset/read-dataset.ts';
import { openDriver } from '../../collector/drivers/open-driver.ts';
import { rewardSpread } from '../../collector/filters/reward-spread.ts';
import { GroupSource } from '../../collector/group-source.ts';
import { compileCollectorOptions } from '../../collector/options.ts';
import { ServerRollouts } from '../../collector/server/server-rollouts.ts';
import { camelCased } from '../../config/camel-cased.ts';
import { RolloutError } from '../../core/errors.ts';
import { never } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import { Scope } from '../../core/scope.ts';
import { Collections } from '../../server/collections/collections.ts';
import type { CollectorWishes, OpenedCollector } from '../../server/collections/open-collector.ts';
import type { OwnKeys } from '../../server/own-keys.ts';
import type { CollectionRequest } from '../../wire/api/collection.ts';
import type { UrlPolicy } from '../../wire/url-policy.ts';
import type { AppPorts } from '../ports.ts';

/** Each has its rows and its waiting groups in memory. */
const maxCollections = 32;

export interface CollectionSources {
  readonly ports: AppPorts;
  readonly logger: Logger;
  /** Datasets may be files below it; null = none may. */
  readonly dir: string | null;
  readonly keys: OwnKeys;
  readonly policy: UrlPolicy;
  readonly hide: (secrets: readonly string[]) => void;
  /** Of this server; asked when it listens. */
  readonly controlUrl: () => string;
}

export function openCollections(sources: CollectionSources): Collections {
  const { ports, logger } = sources;
  return new Collections({
    ...{ clock: ports.clock, logger, max: maxCollections },
    open: (request, wishes) => openCollector(request, wishes, sources),
  });
}

async function openCollector(
  request: CollectionRequest,
  wishes: CollectorWishes,
  sources: CollectionSources,
): Promise<OpenedCollector> {
  const { dataset, model, engines, rollouts, hooks } = request;
  const { ports, logger, policy, keys, hide, controlUrl } = sources;
  const { clock } = ports;
  await using scope = new Scope();
  const options = compileCollectorOptions(camelCased(request.collector));
  const { rows, skippedLines } = await rowsOf(request, sources.dir);
  const { groupSize } = options;
  const source = new GroupSource(rows, {
    ...{ groupSize, from: wishes.from, epochs: dataset.epochs },
    shuffleSeed: dataset.shuffle_seed,
  });
  const { key, end } = keys.issue(wishes.caller);
  scope.defer(released(end));
  hide([key, ...[model?.api_key, engines?.api_key].filter((each) => typeof each === 'string')]);
  let distrust = (): void => undefined;
  scope.defer(released(() => distrust()));
  const port = new ServerRollouts({
    ...{ serverUrl: controlUrl(), serverKey: key },
    ...{ modelUrl: model?.url ?? '', modelKey: model?.api_key ?? null },
    ...{ train: rollouts.train, isGraded: rollouts.graded },
    agentTimeoutSec: rollouts.agent_timeout_sec,
    graderTimeoutSec: rollouts.grader_timeout_sec,
    ...{ listen: {}, watchMs: 1_000, patienceMs: 300_000, clock, fetch },
    onListening: (url) => {
      distrust = policy.trust(url);
    },
  });
  scope.defer(() => port.close());
  const fleet =
    engines === null
      ? null
      : new RouterFleet({
          ...{ routerUrl: engines.router_url, engineUrls: engines.urls, kind: engines.kind },
          ...{ apiKey: engines.api_key, open: ports.openEngine },
        });
  if (fleet !== null) scope.defer(() => fleet.close());
  const { driver, asynchronous } = request;
  const choice = { driver, asynchronous: camelCased(asynchronous), runName: wishes.name };
  const driven = openDriver(choice, {
    ...{ options, source, rollouts: port, fleet, causes: defaultCauses, logger, clock },
    hooks: hooks.group_filter === null ? {} : { groupFilter: rewardSpread },
    findHook: () => Promise.resolve(port.abort),
    ...{ weightVersion: wishes.weightVersion, observe: () => undefined },
  });
  const owned = scope.move();
  return {
    ...{ ...driven, rows: rows.length, skippedLines },
    position: () => source.position,
    close: () => owned[Symbol.asyncDispose](),
  };
}

function released(release: () => void): () => Promise<void> {
  return () => {
    release();
    return Promise.resolve();
  };
}

async function rowsOf({ dataset }: CollectionRequest, dir: string | null): Promise<ReadDataset> {
  if (dataset.file === null) return datasetRows(dataset.rows ?? [], dataset);
  const file = await allowedFile(dataset.file, dir);
  return await readDataset(file, dataset, never);
}

/** Links are followed first: what counts is where the file is. */
async function allowedFile(named: string, dir: string | null): Promise<string> {
  const refused = (message: string, remedy: string): RolloutError =>
    new RolloutError('CONFIG_INVALID', message, {
      ...{ phase: 'config', field: 'dataset.file', remedy },
    });
  if (dir === null)
    throw refused(
      'this server reads no datasets: collections.dir is not set',
      'Send dataset.rows, or set collections.dir.',
    );
  const { file, slice } = sliceOf(named);
  const root = await realpath(dir).catch(() => null);
  const found = await realpath(path.resolve(dir, file)).catch(() => null);
  if (root === null || found?.startsWith(`${root}${path.sep}`) !== true)
    throw refused(
      `there is no file ${JSON.stringify(file)} below collections.dir`,
      'Name a file below that folder, by its path from there.',
    );
  return `${found}${slice}`;
}
