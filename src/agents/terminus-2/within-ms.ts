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
