import { RolloutError, messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { DestroyReceipt } from '../environment.ts';
import { ApiError, apiFailure, isStatus } from './api/api-error.ts';
import { findSandbox, type BootParts } from './sandbox-boot.ts';

export const defaultDestroyMs = 60_000;
const firstPollMs = 100;

/**
 * Removes the sandbox that carries the name as our label, and looks until it is gone. A sandbox without the label is somebody else's, whatever it is called.
 * ENVIRONMENT_DESTROY_FAILED at the deadline.
 */
export async function removeSandbox(
  { api, options, ports }: BootParts,
  name: string,
  settings: { readonly deadlineMs: number; readonly looksAgainMs?: number },
): Promise<DestroyReceipt> {
  const started = performance.now();
  using limit = new LinkedAbort([], {
    ms: Math.max(1_000, settings.deadlineMs),
    reason: () => new Error('the deadline has passed'),
  });
  const { signal } = limit;
  try {
    let isFound = false;
    for (let round = 0; ; round += 1) {
      const found = await findSandbox(api, name, signal);
      if (found === null) {
        // A create of a dead process may still be under way: what is absent is looked for once more.
        if (isFound || round > 0 || settings.looksAgainMs === undefined) break;
        await ports.clock.sleep(settings.looksAgainMs, signal);
        continue;
      }
      isFound = true;
      if (found.state !== 'destroying')
        await api
          .json({ method: 'DELETE', url: `/sandbox/${found.id}`, signal })
          .catch((error: unknown) => {
            // Gone, or in a state in which it cannot be removed yet: the next look tells.
            if (!isStatus(error, 400, 404, 409)) throw error;
          });
      await ports.clock.sleep(Math.min(firstPollMs * 2 ** round, options.pollMs), signal);
    }
  } catch (error) {
    if (!signal.aborted && !(error instanceof ApiError))
      throw apiFailure(error, {
        code: 'ENVIRONMENT_DESTROY_FAILED',
        phase: 'cleanup',
        what: `removing ${name}`,
      });
    throw new RolloutError(
      'ENVIRONMENT_DESTROY_FAILED',
      `the sandbox ${name} could not be removed: ${messageOf(error)}`,
      {
        phase: 'cleanup',
        cause: error,
        remedy:
          'Run "slipway cleanup --env daytona" when the service answers again; at its expiry the service removes it itself.',
      },
    );
  }
  return {
    name,
    confirmedGone: ['container', 'process', 'network'],
    durationMs: performance.now() - started,
  };
}
