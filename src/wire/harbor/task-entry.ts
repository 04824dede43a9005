import { z } from 'zod';
import { laxBoolean, nullable } from './lax.ts';

/** The `task` entry of a trial or job configuration: which task, and from where. Exactly one of `path` and `name`. */
export const taskEntrySchema = z
  .object({
    path: nullable(z.string()),
    git_url: nullable(z.string()),
    git_commit_id: nullable(z.string()),
    /** Package, `org/name`. */
    name: nullable(z.string()),
    ref: nullable(z.string()),
    overwrite: laxBoolean.default(false),
    download_dir: nullable(z.string()),
    /** Name of the dataset that the task came from. */
    source: nullable(z.string()),
  })
  .check(({ value, issues }) => {
    const problem = taskEntryProblem(value);
    if (problem !== null)
      issues.push({ code: 'custom', input: value, path: [problem.field], message: problem.text });
  });

export type TaskEntry = Readonly<z.output<typeof taskEntrySchema>>;

function taskEntryProblem(
  entry: Pick<TaskEntry, 'path' | 'name' | 'ref' | 'git_url' | 'git_commit_id'>,
): { readonly field: string; readonly text: string } | null {
  if (entry.path === null && entry.name === null)
    return { field: 'path', text: 'either path or name is required' };
  if (entry.path !== null && entry.name !== null)
    return { field: 'name', text: 'path and name exclude each other' };
  if (entry.ref !== null && entry.name === null) return { field: 'ref', text: 'ref needs name' };
  if (entry.git_commit_id !== null && entry.git_url === null)
    return { field: 'git_commit_id', text: 'git_commit_id needs git_url' };
  return null;
}
