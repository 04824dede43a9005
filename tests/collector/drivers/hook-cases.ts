/** What may be the matter with the hook of an agent plugin. Every driver is put through all of it: `hook-cases.test.ts`. */
import path from 'node:path';
import type { AbortHookLookup } from '../../../src/collector/abort/abort-hook.ts';
import type { HookState } from '../../../src/collector/abort/abort-receipt.ts';
import type { FleetEngine } from '../../../src/collector/abort/engine-fleet.ts';
import type { CollectorParts } from '../../../src/collector/collector-parts.ts';
import {
  readPluginReference,
  siblingAbort,
} from '../../../src/collector/plugins/plugin-reference.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { CollectorDriver } from '../../../src/collector/drivers/driver.ts';
import type { Batch } from '../../../src/collector/batch.ts';
import { RecordedLogger } from '../recorded-logger.ts';
import { aborted, scene, ScriptedRollouts, settle, success } from '../scripted-rollouts.ts';

const modules = path.join(import.meta.dirname, '../plugins/modules');

export interface HookCase {
  readonly title: string;
  /** Of the module; null = no plugin is configured. */
  readonly plugin: string | null;
  /** What its `abort` does. */
  readonly onAbort?: (rollouts: ScriptedRollouts) => Promise<unknown>;
  readonly state: HookState;
  readonly problem: RegExp | null;
  /** Whether stragglers end by the hook, before anybody waits for them. */
  readonly endsStragglers: boolean;
}

export const hookCases: readonly HookCase[] = [
  {
    title: 'a plugin with abort',
    plugin: 'with-abort.js:run',
    onAbort: async (rollouts) => {
      await rollouts.end(aborted);
      return { cancelled: 2 };
    },
    ...{ state: 'called', problem: null, endsStragglers: true },
  },
  {
    title: 'a plugin without abort',
    plugin: 'without-abort.js:run',
    ...{ state: 'absent', problem: null, endsStragglers: false },
  },
  {
    title: 'an abort that throws',
    plugin: 'with-abort.js:run',
    onAbort: () => Promise.reject(new Error('the host is down')),
    ...{ state: 'failed', problem: /the host is down/, endsStragglers: false },
  },
  {
    title: 'an abort that hangs',
    plugin: 'with-abort.js:run',
    onAbort: () => new Promise(() => undefined),
    ...{ state: 'timed-out', problem: /not done within/, endsStragglers: false },
  },
  {
    title: 'a module that fails to import',
    plugin: 'broken.js:run',
    ...{ state: 'not-loaded', problem: /this module is broken/, endsStragglers: false },
  },
  {
    title: 'no plugin, with rewards by rule',
    plugin: null,
    ...{ state: 'none', problem: null, endsStragglers: false },
  },
];

export interface HookRun {
  readonly batch: Batch;
  readonly receipt: NonNullable<Awaited<Batch['quiet']>>;
  readonly logger: RecordedLogger;
  /** Every request, in order: `rollout …` of ids, `discover`, `abort`, `load`, `hook`. */
  readonly requests: readonly string[];
  readonly lookups: number;
  /** Rollouts that had to be told by the drain. */
  readonly stopped: number;
  /** Ends what a driver has begun beyond that. */
  readonly close: () => Promise<unknown>;
}

/** Collects one group of three, of which two are stragglers, and everything that the abort does to them. */
export async function runHookCase(
  { plugin, onAbort, state, endsStragglers }: HookCase,
  open: (parts: CollectorParts) => CollectorDriver,
): Promise<HookRun> {
  const requests: string[] = [];
  const rollouts = new ScriptedRollouts(({ rolloutId }) => {
    requests.push(`rollout ${rolloutId}`);
    return null;
  });
  const logger = new RecordedLogger();
  let lookups = 0;
  const findHook = plugin === null ? null : hookOf(plugin);
  function hookOf(name: string): AbortHookLookup {
    const find = siblingAbort(readPluginReference(path.join(modules, name)), {
      logger,
      options: {
        onAbort: () => {
          requests.push('hook');
          return onAbort?.(rollouts);
        },
      },
    });
    return () => {
      lookups += 1;
      return find();
    };
  }
  // Long for what is to end by itself, and short for what is to be ended.
  const abort = {
    hookMs: state === 'timed-out' ? 50 : 20_000,
    drainMs: endsStragglers ? 20_000 : 50,
    ...{ settleMs: 20_000, pauseMs: 1 },
  };
  const parts = scene(
    { groupSize: 1, batchGroups: 1, startGroups: 3, unfinished: 'discard', abort },
    {
      ...{ rollouts, logger, findHook },
      fleet: {
        discover: () => {
          requests.push('discover');
          return Promise.resolve([countingEngine(requests)]);
        },
        close: () => Promise.resolve(),
      },
      hooks: { memberReward: () => 0.5 },
    },
  );
  const driver = open(parts);
  const collecting = driver.collect(never);
  await settle();
  await rollouts.end({ ...success, reward: null }, ({ groupIndex }) => groupIndex === 1);
  const batch = await collecting;
  if (batch === null) throw new Error('there is no batch');
  const receipt = (await batch.quiet) ?? (await driver.stop('stopped'));
  if (receipt === null) throw new Error('nothing was aborted');
  const close = () => driver.stop('shutdown');
  const heard = { requests: [...requests], lookups, stopped: rollouts.stopped.length };
  return { batch, receipt, logger, ...heard, close };
}

/** It has one request left after the first pass. */
function countingEngine(requests: string[]): FleetEngine {
  let passes = 0;
  return {
    url: 'http://engine',
    capabilities: {
      ...{ tokenInput: true, tokenIds: true, promptIds: true, logprobs: true, weightVersion: true },
      ...{ abortById: true, abortAll: true, pause: true, tokenize: true, load: true },
    },
    abortAll: () => {
      passes += 1;
      requests.push('abort');
      return Promise.resolve();
    },
    load: () => {
      requests.push('load');
      return Promise.resolve({
        ...{ runningRequests: passes > 1 ? 0 : 1, waitingRequests: 0, kvUse: null },
      });
    },
  };
}
