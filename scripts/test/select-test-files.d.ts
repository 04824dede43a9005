export interface TestPlan {
  readonly measuring: readonly string[];
  readonly alone: readonly string[];
  readonly engine: readonly string[];
  readonly paired: readonly string[];
  readonly plain: readonly string[];
}
export function selectTestFiles(patterns: readonly string[]): TestPlan;
