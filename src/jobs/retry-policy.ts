/** Whether and after which wait a failed trial is tried again. Types are Harbor's exception names, compared exactly. */
export interface RetryPolicy {
  readonly maxRetries: number;
  /** null or empty = every type. */
  readonly include: ReadonlySet<string> | null;
  /** Beats `include`. */
  readonly exclude: ReadonlySet<string>;
  readonly waitMultiplier: number;
  readonly minWaitMs: number;
  readonly maxWaitMs: number;
}

/** `attempt` counts the tries already made, from 1. */
export function mayRetry(policy: RetryPolicy, exceptionType: string, attempt: number): boolean {
  if (attempt > policy.maxRetries || policy.exclude.has(exceptionType)) return false;
  return policy.include === null || policy.include.size === 0 || policy.include.has(exceptionType);
}

/** The wait before the retry that follows try number `attempt` (from 1). */
export function retryWaitMs(policy: RetryPolicy, attempt: number): number {
  return Math.min(policy.minWaitMs * policy.waitMultiplier ** (attempt - 1), policy.maxWaitMs);
}
