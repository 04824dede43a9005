import type { TestEvent } from 'node:test/reporters';

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export class Reporter {
  constructor(options: { readonly isVerbose: boolean; readonly print: (line: string) => void });
  readonly failures: readonly string[];
  see(event: TestEvent): void;
  finish(): Tally;
}
