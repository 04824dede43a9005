export interface Comparison {
  readonly calls: number;
  readonly tokens: number;
  readonly nonCanonical: number;
  readonly problems: readonly string[];
}

export function compareWithLog(logFile: string, trajectories: readonly string[]): Comparison;

export function trajectoriesOf(trialDir: string): string[];
