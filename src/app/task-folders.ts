import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { checkTask, type Finding } from '../tasks/check-task.ts';
import { initTask } from '../tasks/init-task.ts';

export { checkTask, initTask, type Finding };

/** Each folder itself when it is a task or holds none, else the tasks directly in it, sorted. */
export async function taskFolders(dirs: readonly string[], signal: AbortSignal): Promise<string[]> {
  const folders: string[] = [];
  for (const given of dirs) {
    signal.throwIfAborted();
    const dir = resolve(given);
    const children = isTask(dir) ? [] : await readdir(dir).catch(() => []);
    const tasks = children
      .sort()
      .flatMap((name) => (isTask(join(dir, name)) ? join(dir, name) : []));
    folders.push(...(tasks.length === 0 ? [dir] : tasks));
  }
  return folders;
}

function isTask(dir: string): boolean {
  return existsSync(join(dir, 'task.toml'));
}
