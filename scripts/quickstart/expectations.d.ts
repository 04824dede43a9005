export const bundledTasksDir: string;

export interface Expectation {
  readonly task: string;
  readonly name: string;
  readonly feature: string;
  readonly oracle: Readonly<Record<string, number>>;
  readonly nop: Readonly<Record<string, number>>;
  readonly artifacts: readonly string[];
  readonly absentArtifacts: readonly string[];
  readonly refusedBy: readonly string[];
  readonly needsStrictIsolation: boolean;
}

export function readExpectations(): readonly Expectation[];

export function isolationOf(trialDir: string): 'strict' | 'weak' | 'none' | null;

export function judgeTrial(
  expected: Expectation,
  agent: 'oracle' | 'nop',
  environment: string,
  trialDir: string,
): { readonly isRefused: boolean; readonly problems: readonly string[] };
