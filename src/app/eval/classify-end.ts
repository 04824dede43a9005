/** What the end of a rollout means for its row. */
import type { CallbackDocument, RolloutEnd } from '../../callbacks/callback-rendezvous.ts';
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import type { EndedEvent } from './eval-events.ts';

export type ItemEnd = Pick<
  EndedEvent,
  'status' | 'reward' | 'error_type' | 'err_message' | 'cause'
>;

export function classifyEnd(end: RolloutEnd): ItemEnd {
  const { completion, grader } = end;
  if (grader === null) {
    const isMissing = completion !== null;
    return failed(isMissing ? 'missing_grader_callback' : 'callback_timeout', {
      message: isMissing
        ? 'the completion callback came, and no grader callback within the limit of a row'
        : 'no callback came within the limit of a row',
      cause: causeOf(completion),
    });
  }
  if (grader['status'] !== 'success')
    return failed(textOf(grader['err_category']) ?? 'grader_failed', {
      message: textOf(grader['err_message']) ?? textOf(completion?.['err_message']),
      cause: causeOf(grader) ?? causeOf(completion),
    });
  const sample = fieldsOf(grader['sample']);
  const reward = typeof sample['reward'] === 'number' ? sample['reward'] : null;
  const isSkipped = sample['remove_sample'] === true;
  return {
    ...{ status: isSkipped ? 'skipped' : 'success', reward: isSkipped ? null : reward },
    ...{ error_type: null, err_message: null, cause: null },
  };
}

export function failed(
  errorType: string,
  { message, cause }: { readonly message: string | null; readonly cause: string | null },
): ItemEnd {
  return {
    ...{ status: 'failed', reward: null, error_type: errorType },
    ...{ err_message: message, cause },
  };
}

/** As our servers name it among the diagnostics; others do not. */
function causeOf(document: CallbackDocument | null): ErrorCode | null {
  const diagnostics = fieldsOf(document?.['extra_fields']);
  const outcome = fieldsOf(diagnostics['outcome']);
  const cause = [outcome['cause'], diagnostics['cause']].find((one) => typeof one === 'string');
  return cause !== undefined && Object.hasOwn(errorRegistry, cause) ? (cause as ErrorCode) : null;
}

/** Where the failure may come from the model's server: it is asked then. */
export function mayBeOutage({ status, cause }: ItemEnd): boolean {
  if (status !== 'failed') return false;
  if (cause === null || cause.startsWith('ENGINE_')) return true;
  const category = errorRegistry[cause as ErrorCode].category;
  return category === 'agent' || category === 'infrastructure';
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
