/** Reward types by the names that datasets and trainers use. */
import { dapoReward } from './dapo-reward.ts';
import { deterministicReward } from './deterministic-reward.ts';
import { f1Reward } from './f1-reward.ts';
import { gpqaReward } from './gpqa-reward.ts';
import { ifbenchReward } from './ifbench-reward.ts';
import { deepscalerReward, gemmaMathReward, mathReward } from './math-rewards.ts';
import type { RewardRule } from './reward.ts';

export const rewardRules: ReadonlyMap<string, RewardRule> = new Map<string, RewardRule>([
  ['dapo', dapoReward],
  ['deepscaler', deepscalerReward],
  ['deterministic_random', deterministicReward],
  ['f1', f1Reward],
  ['gemma_math', gemmaMathReward],
  ['gpqa', gpqaReward],
  ['ifbench', ifbenchReward],
  ['math', mathReward],
]);
