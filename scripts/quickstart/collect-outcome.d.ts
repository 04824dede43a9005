import type { CollectedBatchLine, CollectedGroupLine } from '../../src/wire/api/collected-lines.ts';

export interface Expected {
  readonly rewards: Readonly<Record<string, number>>;
  readonly batches: number;
  readonly groups: number;
  readonly members: number;
}

export interface Collected {
  readonly groups: readonly CollectedGroupLine[];
  readonly batches: readonly CollectedBatchLine[];
}

export function readCollected(text: string): Collected;
export function problemsOf(collected: Collected, expected: Expected): string[];
export function groupTable(groups: readonly CollectedGroupLine[]): string;
