/** Samples of rollouts, made of their captured calls once their agents have ended. */
import type { RolloutSamples } from '../../wire/rollout/rollout-samples.ts';
import type { SampleRules } from '../../wire/rollout/train-rules.ts';

/** Plain data: it crosses to another thread. */
export interface SamplesTask {
  readonly rolloutId: string;
  /** Captured calls, complete on disk. */
  readonly captured: string;
  /** Calls beyond this many are not the agent's but its grader's; null = there is none. */
  readonly agentCalls: number | null;
  /** Of the rollout; null = nobody gave one. */
  readonly reward: number | null;
  readonly rules: SampleRules;
}

export interface MadeSamples {
  readonly samples: RolloutSamples;
  /** Beside the captured calls, and gone with them; null = there are none. */
  readonly file: string | null;
}

export interface SampleMaker {
  /** Never rejects: what cannot be made is said as that. */
  make(task: SamplesTask): Promise<MadeSamples>;
  /** What clients of Miles take, of a file of samples. `layers`: of the model's routed experts, which their tensor needs. SAMPLES_INVALID for one that cannot be read. */
  milesPayload(file: string, layers: number | null): Promise<Uint8Array>;
}
