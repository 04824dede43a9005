import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitClone } from './git-clone.ts';
import type { GitTask } from './task-reference.ts';

const pointerStart = 'version https://git-lfs.github.com/spec/';
/** A pointer is a few lines; the format bounds it to this. */
const maxPointerBytes = 1024;

/** Replaces LFS pointers of a checked-out task by their files when git-lfs is installed; otherwise answers a warning. */
export async function fetchLfsFiles(
  clone: GitClone,
  task: GitTask,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const dir = join(clone.dir, task.path);
  if (!(await holdsPointer(dir, signal))) return [];
  if (!(await clone.hasLfs()))
    return [
      `task ${task.name}: files are stored in git LFS and git-lfs is not installed; the task holds pointers in their place`,
    ];
  const include = task.path === '.' ? '**' : `${task.path}/**`;
  await clone.git(['lfs', 'pull', `--include=${include}`]);
  return [];
}

async function holdsPointer(dir: string, signal: AbortSignal): Promise<boolean> {
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    signal.throwIfAborted();
    if (entry.name === '.git') continue;
    const path = join(dir, entry.name);
    if (entry.isDirectory() && (await holdsPointer(path, signal))) return true;
    if (entry.isFile() && (await isPointer(path))) return true;
  }
  return false;
}

async function isPointer(path: string): Promise<boolean> {
  const { size } = await stat(path);
  if (size < pointerStart.length || size > maxPointerBytes) return false;
  await using file = await open(path);
  const start = Buffer.alloc(pointerStart.length);
  await file.read(start, 0, start.length, 0);
  return start.toString('latin1') === pointerStart;
}
