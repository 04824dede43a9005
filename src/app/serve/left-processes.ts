/**
 * The processes of a server end with it. One that is too busy to notice would still own the sandboxes of its rollouts, or the port of its model calls, while the
 * next server looks for what is nobody's: so that server ends it first, by what the one before wrote down.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isRunning, processOwner } from '../../store/file/run-owner.ts';
import type { RunOwner } from '../../store/sandbox-journal.ts';

const backendFile = (dataDir: string): string => path.join(dataDir, 'backend.json');
const gatewayFile = (dataDir: string): string => path.join(dataDir, 'gateway.json');
/** SIGKILL needs no longer, unless a disk hangs. */
const goneMs = 5_000;

export async function noteBackend(dataDir: string, pid: number): Promise<void> {
  await note(backendFile(dataDir), processOwner('backend', pid));
}

/** All that there are at the moment. */
export async function noteGatewayWorkers(dataDir: string, pids: readonly number[]): Promise<void> {
  await note(
    gatewayFile(dataDir),
    pids.map((pid) => processOwner('gateway', pid)),
  );
}

/** Whoever calls it owns the folder, and has no process of its own yet. */
export async function endLeftProcesses(dataDir: string): Promise<void> {
  for (const file of [backendFile(dataDir), gatewayFile(dataDir)]) {
    const owners = await readFile(file, 'utf8').then(ownersIn, () => []);
    for (const owner of owners) await end(owner);
    await rm(file, { force: true });
  }
}

async function note(file: string, owners: unknown): Promise<void> {
  await writeFile(file, JSON.stringify(owners), { mode: 0o600 });
}

async function end(owner: RunOwner): Promise<void> {
  for (let leftMs = goneMs; isRunning(owner) && leftMs > 0; leftMs -= 10) {
    kill(owner.pid);
    await delay(10);
  }
}

/** Where it was cut short, its writer died before its process had anything to do: then nobody is named. */
function ownersIn(text: string): readonly RunOwner[] {
  try {
    const noted: unknown = JSON.parse(text);
    return (Array.isArray(noted) ? noted : [noted]).flatMap(ownerOf);
  } catch {
    return [];
  }
}

function ownerOf(noted: unknown): readonly RunOwner[] {
  const { bootId, pid, processStart } = (noted ?? {}) as Partial<RunOwner>;
  // A number below that is a group of processes, or everybody's.
  if (!isWhole(pid) || pid < 2 || !isWhole(processStart) || typeof bootId !== 'string') return [];
  return [{ bootId, pid, processStart, runId: 'left' }];
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
