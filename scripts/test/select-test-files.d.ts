export interface TestPlan {
  readonly alone: readonly string[];
  readonly engine: readonly string[];
  readonly paired: readonly string[];
  readonly plain: readonly string[];
}
export function selectTestFiles(patterns: readonly string[]): TestPlan;
