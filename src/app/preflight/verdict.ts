import { isRolloutError, messageOf } from '../../core/errors.ts';
import type { PreflightResult } from '../../wire/preflight-report.ts';

/** What one check found. */
export type Verdict = Pick<
  PreflightResult,
  'status' | 'summary' | 'code' | 'field' | 'remedy' | 'detail'
>;

const nothingMore = { code: null, field: null, remedy: null, detail: null };

export function passed(summary: string): Verdict {
  return { ...nothingMore, status: 'ok', summary };
}

export function warned(
  summary: string,
  more: { readonly field?: string; readonly remedy: string },
): Verdict {
  return { ...nothingMore, ...more, status: 'warning', summary };
}

export function skipped(why: string): Verdict {
  return { ...nothingMore, status: 'skipped', summary: why };
}

export function failedWith(error: unknown): Verdict {
  if (!isRolloutError(error))
    return { ...nothingMore, status: 'failed', code: 'INTERNAL', summary: messageOf(error) };
  const { code, message, field, remedy, detail } = error;
  return { status: 'failed', code, summary: message, field, remedy, detail };
}
