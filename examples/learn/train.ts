/** The trainer's loop: collect groups, update the policy, hand the new weights to the engine, again. */
import { openEngine } from '../../src/engines/registry.ts';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { RouterFleet } from '../../src/collector/abort/router-fleet.ts';
import { defaultCauses } from '../../src/collector/cause-policy.ts';
import type { CollectorParts } from '../../src/collector/collector-parts.ts';
import { AsynchronousDriver } from '../../src/collector/drivers/asynchronous-driver.ts';
import { SynchronousDriver } from '../../src/collector/drivers/synchronous-driver.ts';
import type { CollectedGroup } from '../../src/collector/group.ts';
import { collectorBegin, GroupSource } from '../../src/collector/group-source.ts';
import { compileCollectorOptions } from '../../src/collector/options.ts';
import { rows } from './exercises.ts';
import { grpoStep, type GrpoBatch, type GrpoReport } from './grpo.ts';
import type { LetterPolicy } from './letter-policy.ts';
import { withMistake, type Mistake } from './shifted-samples.ts';
import type { LearningStack } from './stack.ts';
import { updateWeights } from './weight-update.ts';

export type LearningMode = 'synchronous' | 'asynchronous';

export interface TrainOptions {
  readonly mode: LearningMode;
  readonly seed: number;
  readonly groupSize: number;
  readonly batchGroups: number;
  readonly rate: number;
  readonly maxUpdates: number;
  /** The mean reward of a batch at which it stops. */
  readonly goal: number;
  readonly mistake: Mistake | null;
  readonly onUpdate: (update: number, report: GrpoReport) => void;
}

/** Mean reward of each batch, in order. Rejects with OffPolicyError where the samples' log-probabilities are not the policy's. */
export async function train(
  stack: LearningStack,
  options: TrainOptions,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const weights = new PublishedWeights(stack);
  const engines = {
    routerUrl: null,
    engineUrls: [stack.engineUrl],
    kind: 'sglang',
    apiKey: null,
  } as const;
  const fleet = new RouterFleet({ ...engines, open: openEngine });
  const parts = collectorParts({ stack, fleet, weights, options });
  const asynchronous =
    options.mode === 'asynchronous' ? new AsynchronousDriver(parts, 'learn', staleness) : null;
  const driver = asynchronous ?? new SynchronousDriver(parts, 'learn');
  const rewards: number[] = [];
  const publish = async (policy: LetterPolicy): Promise<void> => {
    asynchronous?.pause();
    await weights.publish(policy, signal);
    asynchronous?.resume();
  };
  try {
    await publish(stack.model.policy);
    while (rewards.length < options.maxUpdates) {
      const batch = await driver.collect(signal);
      if (batch === null) break;
      const policy = stack.model.policy.copy();
      const report = grpoStep(policy, weights.batchOf(batch.groups, options.mistake), {
        ...{ rate: options.rate, clip: 0.2, versions: weights.versions },
        // Who checks the reported ones never gets as far as to learn nothing from wrong masks.
        oldLogprobs: options.mistake === 'masks' ? 'recomputed' : 'reported',
        // A call that an update fell into is named by the later weights, and only a part of it is theirs.
        isOnPolicy: asynchronous === null || rewards.length === 0,
      });
      rewards.push(report.meanReward);
      options.onUpdate(rewards.length, report);
      if (report.meanReward >= options.goal) break;
      await batch.quiet;
      await publish(policy);
    }
  } finally {
    await driver.stop('stopped');
    await fleet.close();
  }
  return rewards;
}

/** Groups that wait while the trainer works, and how old they may be. */
const staleness = { maxStaleness: 2 };

/** The weights that the engine samples with, and those that it sampled with before. */
class PublishedWeights {
  readonly versions = new Map<string, LetterPolicy>();
  readonly #stack: LearningStack;
  #version = 0;

  constructor(stack: LearningStack) {
    this.#stack = stack;
  }

  get version(): number {
    return this.#version;
  }

  async publish(policy: LetterPolicy, signal: AbortSignal): Promise<void> {
    const version = String(this.#version + 1);
    const install = () => void (this.#stack.model.policy = policy);
    await updateWeights(this.#stack, { version, install }, signal);
    this.#version += 1;
    this.versions.set(version, policy);
  }

  batchOf(groups: readonly CollectedGroup[], mistake: Mistake | null): GrpoBatch {
    const learnt = mistake === null ? groups : groups.map((group) => withMistake(group, mistake));
    return { groups: learnt, codec: this.#stack.codec, version: String(this.#version) };
  }
}

function collectorParts({
  stack,
  fleet,
  weights,
  options,
}: {
  readonly stack: LearningStack;
  readonly fleet: RouterFleet;
  readonly weights: PublishedWeights;
  readonly options: TrainOptions;
}): CollectorParts {
  const { groupSize, batchGroups, seed } = options;
  const startGroups = Math.ceil(batchGroups * 1.25);
  return {
    options: compileCollectorOptions({ groupSize, batchGroups, startGroups, maxConcurrent: 64 }),
    source: new GroupSource(dataset, {
      ...{ groupSize, shuffleSeed: seed, epochs: null, from: collectorBegin },
    }),
    ...{ rollouts: stack.rollouts, fleet, findHook: () => Promise.resolve(stack.rollouts.abort) },
    ...{ hooks: {}, causes: defaultCauses, weightVersion: () => weights.version },
    ...{ clock: systemClock, logger: silentLogger, observe: () => undefined },
  };
}

const dataset = rows.map((row, rowIndex) => ({ ...row, rowIndex }));
