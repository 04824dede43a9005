import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import assert from 'node:assert/strict';
import type { Environment } from '../../../src/environments/environment.ts';

/** Waits until `look` answers true; fails with `what` after the limit. */
export async function eventually(
  what: string,
  look: () => Promise<boolean>,
  limitMs = 5_000,
): Promise<void> {
  const endsAt = performance.now() + limitMs;
  while (!(await look())) {
    if (performance.now() > endsAt) assert.fail(`not within ${limitMs} ms: ${what}`);
    await pause(50);
  }
}

export const settle = (ms: number): Promise<void> => pause(ms);

/** Command lines of the host's processes that contain the marker, this process left out. */
export async function hostProcessesWith(marker: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (line.includes(marker)) found.push(line.replaceAll('\0', ' '));
  }
  return found;
}

/** Runs a command that must succeed; answers its standard output without the last newline. */
export async function output(
  environment: Environment,
  command: string,
  signal: AbortSignal,
): Promise<string> {
  const result = await environment.exec({ command }, signal);
  assert.equal(result.exitCode, 0, `${command}: ${result.stderr}`);
  return result.stdout.replace(/\n$/, '');
}
