import { setTimeout as pause } from 'node:timers/promises';

export interface UntilOptions {
  readonly limitMs?: number;
  /** Between two looks; for those that cost something. */
  readonly everyMs?: number;
}

/** Waits until something is so; fails with `what` when it does not come. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  { limitMs = 30_000, everyMs = 2 }: UntilOptions = {},
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it never came: ${what}`);
    await pause(everyMs);
  }
}
