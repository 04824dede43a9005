import type { ExecutionResult } from '../execution-backend.ts';

/** A result as the completion tells it: how the rollout ends is not known before its grading. */
export function interim<T extends Pick<ExecutionResult, 'diagnostics'>>(result: T): T {
  const { diagnostics } = result;
  if (diagnostics === null) return result;
  const known = Object.entries(diagnostics).filter(([name]) => name !== 'outcome');
  return { ...result, diagnostics: Object.fromEntries(known) };
}
