import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { DestroyReceipt } from '../environment.ts';
import { SkyError, skyFailure } from './sky-error.ts';
import { skyName } from './sky-names.ts';
import type { SkyService } from './sky-service.ts';

export const defaultDestroyMs = 120_000;
const pollMs = 250;

/** Ends what carries the name, also what is half made, until the service lists nothing of it. ENVIRONMENT_DESTROY_FAILED at the deadline. */
export async function removeSandbox(
  service: SkyService,
  name: string,
  deadlineMs: number,
): Promise<DestroyReceipt> {
  const began = performance.now();
  using limit = new LinkedAbort([], {
    ms: Math.max(1_000, deadlineMs),
    reason: () => new SkyError('unavailable', `${name} is not gone at the deadline`),
  });
  try {
    for (;;) {
      await service.terminate(skyName(name), limit.signal);
      const left = await service.list(limit.signal);
      if (!left.some((record) => record.name === skyName(name))) break;
      await delay(pollMs, undefined, { signal: limit.signal });
    }
  } catch (error) {
    const cause: unknown = limit.signal.aborted ? limit.signal.reason : error;
    throw skyFailure(cause, {
      code: 'ENVIRONMENT_DESTROY_FAILED',
      phase: 'cleanup',
      what: `removing ${name}`,
    });
  }
  return { name, confirmedGone: ['container'], durationMs: performance.now() - began };
}

export function stillCreating(name: string): RolloutError {
  return new RolloutError('ENVIRONMENT_DESTROY_FAILED', `SkyPilot is still creating ${name}`, {
    phase: 'cleanup',
    remedy: 'Run "slipway cleanup" later; SkyPilot ends it at its expiry at the latest.',
  });
}
