import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';

/** For cleaning up, which has a deadline of its own: rejects when `work` takes longer. */
export async function withinMs(ms: number, work: Promise<void>): Promise<void> {
  using limit = new LinkedAbort([], { ms, reason: () => new Error(`not done within ${ms} ms`) });
  const { signal } = limit;
  await Promise.race([
    work,
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    }),
  ]);
}

/** For letting go of something that nobody needs any more: late or failing, it is told to `warn` and takes nothing from what was done. */
export async function letGoWithinMs(
  ms: number,
  work: Promise<void>,
  warn: (problem: string) => void,
): Promise<void> {
  await withinMs(ms, work).catch((error: unknown) => warn(messageOf(error)));
}
