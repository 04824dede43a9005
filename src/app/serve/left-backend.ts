/**
 * The process of a backend ends with its server. One that is too busy to notice would still own the sandboxes of its rollouts while the next server looks for
 * those that are nobody's: so that server ends it first, by what the one before wrote down.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isRunning, processOwner } from '../../store/file/run-owner.ts';
import type { RunOwner } from '../../store/sandbox-journal.ts';

const fileOf = (dataDir: string): string => path.join(dataDir, 'backend.json');
/** SIGKILL needs no longer, unless a disk hangs. */
const goneMs = 5_000;

export async function noteBackend(dataDir: string, pid: number): Promise<void> {
  await writeFile(fileOf(dataDir), JSON.stringify(processOwner('backend', pid)), { mode: 0o600 });
}

export async function forgetBackend(dataDir: string): Promise<void> {
  await rm(fileOf(dataDir), { force: true });
}

/** Whoever calls it owns the folder, and has no backend yet. */
export async function endLeftBackend(dataDir: string): Promise<void> {
  const owner = await readFile(fileOf(dataDir), 'utf8').then(ownerIn, () => null);
  for (let leftMs = goneMs; owner !== null && isRunning(owner) && leftMs > 0; leftMs -= 10) {
    kill(owner.pid);
    await delay(10);
  }
  await forgetBackend(dataDir);
}

/** null = nobody is named: where it was cut short, its writer died before its backend had anything to do. */
function ownerIn(text: string): RunOwner | null {
  try {
    const { bootId, pid, processStart } = JSON.parse(text) as Partial<RunOwner>;
    // A number below that is a group of processes, or everybody's.
    if (!isWhole(pid) || pid < 2 || !isWhole(processStart) || typeof bootId !== 'string')
      return null;
    return { bootId, pid, processStart, runId: 'backend' };
  } catch {
    return null;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It ended by itself in between.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
