/** Whether and after which wait a failed trial is tried again. Names are Harbor's exception types or our error codes, compared exactly. */
export interface RetryPolicy {
  readonly maxRetries: number;
  /** null or empty = every failure. */
  readonly include: ReadonlySet<string> | null;
  /** Beats `include`. */
  readonly exclude: ReadonlySet<string>;
  readonly waitMultiplier: number;
  readonly minWaitMs: number;
  readonly maxWaitMs: number;
}

/** `names` are all that the failure goes by; `attempt` counts the tries already made, from 1. */
export function mayRetry(
  { maxRetries, include, exclude }: RetryPolicy,
  names: readonly string[],
  attempt: number,
): boolean {
  if (attempt > maxRetries || names.some((name) => exclude.has(name))) return false;
  return include === null || include.size === 0 || names.some((name) => include.has(name));
}

/** The wait before the retry that follows try number `attempt` (from 1). */
export function retryWaitMs(policy: RetryPolicy, attempt: number): number {
  return Math.min(policy.minWaitMs * policy.waitMultiplier ** (attempt - 1), policy.maxWaitMs);
}
