export interface RolloutLine {
  readonly task: string;
  readonly id: string;
  readonly status: string;
  readonly reward: number | null;
  readonly message: string | null;
  readonly ms: number;
}

export interface TaskRow {
  readonly task: string;
  readonly rewards: readonly string[];
  readonly expected: string;
  readonly slowest: string;
  readonly verdict: string;
  readonly problems: readonly string[];
}

export function readResults(output: string): RolloutLine[];
export function judgeTask(
  task: string,
  results: readonly RolloutLine[],
  expected: { readonly reward: number; readonly rollouts: number },
): TaskRow;
export function taskTable(rows: readonly TaskRow[]): string;
