/** Groups and batches in the words of the wire. */
import type {
  CollectedBatchLine,
  CollectedGroupLine,
  CollectedMemberLine,
  CollectedSampleLine,
} from '../../wire/api/collected-lines.ts';
import type { AbortReceipt } from '../abort/abort-receipt.ts';
import type { Batch } from '../batch.ts';
import type { CollectedGroup } from '../group.ts';
import type { CollectedMember } from '../member.ts';
import type { TrainingSample } from '../training-sample.ts';

export function groupLine(group: CollectedGroup, batch: number): CollectedGroupLine {
  const { groupIndex, row } = group.seed;
  return {
    ...{ type: 'group', batch, group: groupIndex, row: row.rowIndex, epoch: row.epoch },
    ...{ prompt: row.messages, label: row.label, metadata: row.metadata },
    oldest_version: group.oldestVersion,
    members: group.members.map(memberLine),
  };
}

function memberLine(member: CollectedMember): CollectedMemberLine {
  const { request, end, reward, isMasked, isRemoved, attempts, durationMs } = member;
  return {
    ...{ rollout_id: request.rolloutId, member: request.memberIndex },
    ...{ status: end.status, cause: end.cause, reward },
    ...{ is_masked: isMasked, is_removed: isRemoved, attempts },
    duration_ms: Math.round(durationMs),
    samples: end.samples.map(sampleLine),
  };
}

function sampleLine(sample: TrainingSample): CollectedSampleLine {
  const { tokens, promptLength, lossMask, logprobs, weight, isTruncated, spans } = sample;
  return {
    ...{ tokens, prompt_length: promptLength, loss_mask: lossMask, log_probs: logprobs, weight },
    is_truncated: isTruncated,
    spans: spans.map(({ begin, end, isTrained, weightVersion }) => ({
      ...{ begin, end, trained: isTrained, weight_version: weightVersion },
    })),
  };
}

/** Waits until the rest of the batch is gone. */
export async function batchLine(batch: Batch, index: number): Promise<CollectedBatchLine> {
  const receipt = await batch.quiet;
  const report = batch.report();
  const rewards = batch.groups
    .flatMap(({ members }) => members)
    .flatMap(({ reward, isMasked }) => (reward === null || isMasked ? [] : [reward]));
  const sum = rewards.reduce((total, reward) => total + reward, 0);
  return {
    ...{ type: 'batch', batch: index, groups: batch.groups.length },
    started: { groups: report.groupsStarted, rollouts: report.rolloutsStarted },
    ...{ refilled: report.rolloutsRefilled, losses: report.losses, dropped: report.drops },
    ...{ returned: report.returned.length, collect_ms: Math.round(report.collectMs) },
    mean_reward: rewards.length === 0 ? null : sum / rewards.length,
    abort: receipt === null ? null : abortOf(receipt),
  };
}

function abortOf(receipt: AbortReceipt): NonNullable<CollectedBatchLine['abort']> {
  const by: Record<string, number> = {};
  for (const { how } of receipt.rollouts) by[how] = (by[how] ?? 0) + 1;
  return {
    ...{ rollouts: receipt.rollouts.length, by, engines: receipt.engines.length },
    ...{ hook: receipt.hook.state, duration_ms: Math.round(receipt.durationMs) },
    ...{ is_complete: receipt.isComplete, problems: problemsOfAbort(receipt) },
  };
}

export function problemsOfAbort({ discoveryProblem, engines, hook }: AbortReceipt): string[] {
  const found = [discoveryProblem, ...engines.map(({ problem }) => problem), hook.problem];
  return found.filter((problem) => problem !== null);
}
