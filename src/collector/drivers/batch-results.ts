/** What becomes of results, by policy: the same in every driver. */
import { RolloutError } from '../../core/errors.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { CollectedGroup, DroppedGroup, GroupSeed } from '../group.ts';
import type { MemberEnd } from '../member.ts';
import type { GroupResult } from '../pool/live-group.ts';

type Unfinished = Extract<GroupResult, { kind: 'unfinished' }>;
type ResultParts = Pick<CollectorParts, 'options' | 'source' | 'observe'>;

/** It is handed over. */
export function keepGroup(group: CollectedGroup, { source, observe }: ResultParts): void {
  source.settle(group.seed);
  observe({ type: 'group:kept', group });
}

export function dropGroup(dropped: DroppedGroup, { source, options, observe }: ResultParts): void {
  const { seed } = dropped;
  const isLost = dropped.reason === 'lost' && source.countLoss(seed) >= options.maxRowLosses;
  const reason = isLost ? 'given-up' : dropped.reason;
  if (reason === 'given-up') source.giveUp(seed);
  else source.settle(seed);
  observe({ type: 'group:dropped', group: { ...dropped, reason } });
}

/** Complete, and the batch is full. Answers whether it is to be kept for the next one. */
export function surplusGroup(group: CollectedGroup, parts: ResultParts): boolean {
  const { options, source, observe } = parts;
  const { seed } = group;
  switch (options.surplus) {
    case 'keep':
      observe({ type: 'group:returned', seed, as: 'complete' });
      return true;
    case 'return':
      source.giveBack(seed, []);
      observe({ type: 'group:returned', seed, as: 'new' });
      return false;
    case 'discard': {
      const ends = group.members.map(({ end }) => end);
      dropGroup({ seed, reason: 'surplus', detail: null, ends }, parts);
      return false;
    }
  }
}

/** Its weights are older than the limit. A row that is too slow again and again is not served for ever. */
export function staleGroup(
  { seed, ends }: { readonly seed: GroupSeed; readonly ends: readonly (MemberEnd | null)[] },
  { parts, returns }: { readonly parts: ResultParts; readonly returns: boolean },
): void {
  if (!returns || seed.rounds + 1 >= parts.options.maxAttempts) {
    dropGroup({ seed, reason: 'stale', detail: null, ends }, parts);
    return;
  }
  parts.source.giveBack(seed, []);
  parts.observe({ type: 'group:returned', seed, as: 'new' });
}

/** An abort cut it off. */
export function unfinishedGroup({ seed, remains }: Unfinished, parts: ResultParts): void {
  const { options, source, observe } = parts;
  switch (options.unfinished) {
    case 'discard': {
      const ends = remains.map(({ member }) => member?.end ?? null);
      dropGroup({ seed, reason: 'aborted', detail: null, ends }, parts);
      break;
    }
    case 'return':
      source.giveBack(seed, []);
      observe({ type: 'group:returned', seed, as: 'new' });
      break;
    case 'resume':
    case 'resume-masked': {
      const isNew = remains.every(({ member, partial }) => member === null && partial.length === 0);
      source.giveBack(seed, isNew ? [] : remains);
      observe({ type: 'group:returned', seed, as: isNew ? 'new' : 'partial' });
      break;
    }
  }
}

export function stalled(groups: number, reason: string): RolloutError {
  return new RolloutError(
    'COLLECTION_STALLED',
    `${groups} groups in a row came to nothing, the last one as ${reason}`,
    {
      phase: 'queue',
      field: 'maxLostGroups',
      remedy: 'Read the causes in the report of the batch: rollouts fail one after the other.',
    },
  );
}
