import type { Expectation } from './expectations.js';

export interface Row {
  readonly task: string;
  readonly reward: string;
  readonly expected: string;
  readonly turns: string;
  readonly tokensIn: string;
  readonly tokensOut: string;
  readonly time: string;
  readonly verdict: string;
  readonly isProblem: boolean;
}

export function judgeAgentTrial(
  task: Expectation,
  expected: number,
  found: { readonly environment: string; readonly trialDir: string | undefined },
): Row;

export function agentTable(rows: readonly Row[]): string;
