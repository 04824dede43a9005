/** The tasks of `prewarm`: texts and tables in the forms of a row's metadata. */
import { messageOf } from '../../core/errors.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { readHarborTask } from './harbor-task.ts';

export interface PrewarmTask {
  readonly entry: TaskEntry;
  readonly warnings: readonly string[];
}

/** null = none are asked for. An empty list is a mistake: whoever writes it believes that something is prepared. */
export function readPrewarmTasks(
  given: readonly (string | Readonly<Record<string, unknown>>)[] | null,
  problems: string[],
): readonly PrewarmTask[] {
  if (given?.length === 0) problems.push('prewarm: names no task');
  return (given ?? []).flatMap((task, index) => {
    try {
      return [readHarborTask(typeof task === 'string' ? { harbor_task: task } : task)];
    } catch (error) {
      problems.push(`prewarm.${index}: ${messageOf(error)}`);
      return [];
    }
  });
}

/** As it may be shown: without an address, which may hold a credential. */
export function labelOf(entry: TaskEntry): string {
  if (entry.name !== null) return `${entry.name}@${entry.ref ?? 'latest'}`;
  if (entry.git_url === null) return entry.path ?? '<unknown-path>';
  return `git:${entry.path ?? '<unknown-path>'}@${entry.git_commit_id ?? '<unpinned>'}`;
}
