/** Collections in the words of the wire. */
import type { AbortReceipt } from '../../collector/abort/abort-receipt.ts';
import type { CollectorPosition } from '../../collector/group-source.ts';
import { problemsOfAbort } from '../../collector/output/collected-lines.ts';
import type { AbortReceiptDocument, CollectionDocument } from '../../wire/api/collection.ts';
import type { Collection } from './collection.ts';

export function collectionDocumentOf(collection: Collection): CollectionDocument {
  const { id, state, lines, facts, createdAt, rows, skippedLines, batches } = collection;
  return {
    ...{ id, state, created_at: createdAt.toISOString(), rows, skipped_lines: skippedLines },
    ended_at: facts.endedAt?.toISOString() ?? null,
    ...{ batches, batches_collected: facts.batchesCollected },
    groups_collected: facts.groupsCollected,
    groups_unacknowledged: lines.unacknowledgedGroups,
    ...{ acknowledged: lines.acknowledged, cursor: lines.newest },
    weight_version: collection.weightVersion,
    position: positionDocumentOf(collection.position),
    error: facts.error,
    receipt: facts.receipt === null ? null : receiptDocumentOf(facts.receipt),
  };
}

function receiptDocumentOf(receipt: AbortReceipt): AbortReceiptDocument {
  const { reason, at, durationMs, isComplete, hook, engines, rollouts } = receipt;
  return {
    ...{ reason, at: at.toISOString(), duration_ms: Math.round(durationMs) },
    ...{ is_complete: isComplete, hook: hook.state, engines: engines.length },
    problems: problemsOfAbort(receipt),
    rollouts: rollouts.map(({ rolloutId, groupIndex, how, afterMs, confirmed }) => ({
      ...{ rollout_id: rolloutId, group: groupIndex, how, after_ms: Math.round(afterMs) },
      ...{ is_gone: confirmed?.isGone ?? null, detail: confirmed?.detail ?? null },
    })),
  };
}

type PositionDocument = CollectionDocument['position'];

function positionDocumentOf({
  dataset,
  nextGroupIndex,
  open,
  givenUpRows,
  fingerprint,
}: CollectorPosition): PositionDocument {
  return {
    ...{ dataset: { ...dataset }, next_group: nextGroupIndex },
    open: open.map(({ groupIndex, rowIndex, epoch, rounds }) => ({
      ...{ group: groupIndex, row: rowIndex, epoch, rounds },
    })),
    given_up_rows: [...givenUpRows],
    fingerprint,
  };
}

export function positionOf(document: PositionDocument): CollectorPosition {
  const { dataset, next_group: nextGroupIndex, open, given_up_rows: givenUpRows } = document;
  const { fingerprint } = document;
  return {
    ...{ dataset, nextGroupIndex, givenUpRows, fingerprint },
    open: open.map(({ group, row, epoch, rounds }) => ({
      ...{ groupIndex: group, rowIndex: row, epoch, rounds },
    })),
  };
}
