import { setTimeout as pause } from 'node:timers/promises';

const longestMs = 30_000;

/** Waits until something is so; fails with `what` when it does not come. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + longestMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it never came: ${what}`);
    await pause(2);
  }
}
