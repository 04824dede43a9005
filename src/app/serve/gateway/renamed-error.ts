import { isRolloutError, RolloutError } from '../../../core/errors.ts';

/** A CONFIG_INVALID named as the setting that it comes from. */
export function renamed(error: unknown, field: string): unknown {
  if (!isRolloutError(error, 'CONFIG_INVALID')) return error;
  const { message, remedy } = error;
  return new RolloutError('CONFIG_INVALID', message, {
    ...{ phase: 'config', field, cause: error },
    ...(remedy !== null && { remedy }),
  });
}
