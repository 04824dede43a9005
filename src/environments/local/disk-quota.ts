/** A sandbox's disk of limited size: a file system of its own in a sparse file, mounted through a loop device. */
import { openSync, ftruncateSync, closeSync } from 'node:fs';
import { RolloutError } from '../../core/errors.ts';
import { findProgram, runHostCommand } from './host-command.ts';
import type { SandboxFolder } from './sandbox-folder.ts';

const programs = ['mkfs.ext4', 'mount', 'umount'] as const;

export function canLimitDisk(): boolean {
  return programs.every((name) => findProgram(name) !== null);
}

/** Makes and mounts it over `folder.disk`, which exists and is empty. */
export async function mountLimitedDisk(
  folder: SandboxFolder,
  sizeMb: number,
  signal: AbortSignal,
): Promise<void> {
  const file = openSync(folder.diskImage, 'wx', 0o600);
  try {
    ftruncateSync(file, sizeMb * 1024 * 1024);
  } finally {
    closeSync(file);
  }
  // No journal: nobody reads it after a crash. No reserve: root in the sandbox gets what the task says.
  await step(folder.diskImage, signal, findProgram('mkfs.ext4') ?? 'mkfs.ext4', [
    ...['-q', '-F', '-m', '0', '-O', '^has_journal,^resize_inode'],
    ...['-E', 'lazy_itable_init=1,nodiscard', folder.diskImage],
  ]);
  await step(folder.diskImage, signal, 'mount', [
    ...['-t', 'ext4', '-o', 'loop,nosuid,nodev,noatime', folder.diskImage, folder.disk],
  ]);
}

async function step(
  image: string,
  signal: AbortSignal,
  file: string,
  args: readonly string[],
): Promise<void> {
  const result = await runHostCommand({ file, args }, signal);
  if (result.exitCode === 0) return;
  throw new RolloutError('ENVIRONMENT_START_FAILED', `${file} failed for ${image}`, {
    phase: 'environment',
    field: 'environment.storage_mb',
    detail: result.stderr,
    remedy: 'Ask for at least 16 MB of storage, and see that loop devices can be used.',
  });
}
