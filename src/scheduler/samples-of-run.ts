/**
 * The samples of a rollout whose agent has ended: made of its captured calls, and in the archive before anybody is told of the end. What stands in the way is said
 * as the reason why there are none; nothing is guessed, and no rollout fails for it.
 */
import type { ExecutionResult } from '../backends/execution-backend.ts';
import { messageOf } from '../core/errors.ts';
import type { MadeSamples } from '../gateway/samples/sample-maker.ts';
import {
  noSamples,
  samplesDocumentOf,
  samplesFile,
  samplesOfEnd,
  type RolloutSamples,
} from '../wire/rollout/rollout-samples.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { CaptureActivity } from '../wire/rollout/route-activity.ts';
import type { SampleRules } from '../wire/rollout/train-rules.ts';
import { outcomeOf } from './outcomes.ts';
import type { SchedulerParts } from './scheduler-parts.ts';

export class SamplesOfRun {
  readonly #rolloutId: string;
  readonly #parts: SchedulerParts;
  #capture: CaptureActivity | null = null;
  /** Calls that were the agent's own: what came after it had ended was its grader's. null = nothing came after it, unknown = its gateway did not answer then. */
  #agentCalls: number | null | 'unknown' = null;

  constructor(rolloutId: string, parts: SchedulerParts) {
    this.#rolloutId = rolloutId;
    this.#parts = parts;
  }

  /** What its route says of its capture now; null = it has none. */
  note(capture: CaptureActivity | null): void {
    this.#capture = capture;
  }

  /** Calls from now on are the grader's. */
  agentEnded(): void {
    this.#agentCalls = this.#capture?.calls ?? 'unknown';
  }

  /** Its key is dead. Never rejects. */
  async make(result: ExecutionResult, rules: SampleRules): Promise<MadeSamples> {
    const { gateway, sampleMaker } = this.#parts;
    const [rolloutId, agentCalls, capture] = [this.#rolloutId, this.#agentCalls, this.#capture];
    const none = (samples: RolloutSamples): MadeSamples => ({ samples, file: null });
    const ended = samplesOfEnd(outcomeOf(result));
    if (ended !== null) return none(ended);
    if (result.sample?.isRemoved === true)
      return none(noSamples('removed', 'its workflow or grader removed the sample'));
    if (capture?.problem != null)
      return none(noSamples('calls-missing', `not all calls are kept: ${capture.problem.message}`));
    try {
      const captured = await gateway.captured(rolloutId);
      if (captured === null) return none(noSamples('no-calls', 'its agent called no model'));
      if (agentCalls === 'unknown')
        return none(noSamples('calls-missing', 'which calls were its agent’s own is not known'));
      if (sampleMaker === undefined)
        return none(noSamples('not-made', 'this server makes no samples'));
      const reward = rewardOf(result);
      return await sampleMaker.make({ rolloutId, captured, agentCalls, rules, reward });
    } catch (error) {
      return none(noSamples('not-made', `its calls cannot be read: ${messageOf(error)}`));
    }
  }

  /** Durable when it resolves, or it says that there are none. Never rejects. */
  async keep({ samples, file }: MadeSamples): Promise<RolloutSamples> {
    if (file === null) return samples;
    const { archive, logger } = this.#parts;
    const rolloutId = this.#rolloutId;
    const problem = await archive
      .save({
        ...{ rolloutId, documents: {} },
        files: [{ name: samplesFile, path: file, mayBeTaken: true }],
        // Nothing in it was written by anybody, and a number is no key.
        secrets: [],
      })
      .then(
        (problems) => problems.find(({ name }) => name === samplesFile)?.problem ?? null,
        messageOf,
      );
    if (problem === null) return samples;
    logger.log('warn', 'samples were not kept', { rolloutId, problem });
    const { calls, callsWithoutIds, link } = samples;
    return noSamples('not-made', `the samples cannot be kept: ${problem}`, {
      ...{ calls, callsWithoutIds, link },
    });
  }
}

/** What the last callback says of them too. */
export function withSamples(result: ExecutionResult, samples: RolloutSamples): ExecutionResult {
  return {
    ...result,
    diagnostics: { ...result.diagnostics, samples: samplesDocumentOf(samples) },
  };
}

/** Of an end that is nobody's result. */
export function endWithoutSamples(
  outcome: RolloutOutcome,
  { wantsSamples }: { readonly wantsSamples: boolean },
): RolloutOutcome {
  const samples = wantsSamples ? samplesOfEnd(outcome) : null;
  return samples === null ? outcome : { ...outcome, samples };
}

/** A trial that failed after all may have been verified: its protocol has no reward then, a sample has. */
function rewardOf({ sample, outcome }: ExecutionResult): number | null {
  if (sample?.reward != null) return sample.reward;
  const rewards = outcome.verdict?.rewards ?? {};
  const values = Object.values(rewards);
  return rewards['reward'] ?? (values.length === 1 ? (values[0] ?? null) : null);
}
