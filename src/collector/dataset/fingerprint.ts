import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/canonical-json.ts';
import type { DatasetRow } from './dataset-row.ts';

/** Names rows and their order, for positions: one of other rows, or of another order, means nothing here. */
export function datasetFingerprint(
  rows: readonly Omit<DatasetRow, 'epoch'>[],
  shuffleSeed: number | null,
): string {
  const hash = createHash('sha256').update(`${shuffleSeed}\n`);
  for (const row of rows) hash.update(`${canonicalJson(row)}\n`);
  return `sha256:${hash.digest('hex')}`;
}
