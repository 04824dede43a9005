import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

/** Content by relative path; `linkTo` makes a symbolic link. */
export type FolderFiles = Readonly<
  Record<string, string | Uint8Array | { readonly linkTo: string }>
>;

/** A folder of real files that removes itself: `await using task = await taskFolder({...})`. */
export interface TaskFolder extends AsyncDisposable {
  readonly dir: string;
}

/** A complete single-step task; spread it and replace what a test is about. */
export const plainTask: FolderFiles = {
  'task.toml': '',
  'instruction.md': 'Do it.\n',
  'environment/Dockerfile': 'FROM debian:bookworm-slim\n',
  'tests/test.sh': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
  'solution/solve.sh': '#!/bin/bash\ntrue\n',
};

export async function taskFolder(files: FolderFiles, name = 'a-task'): Promise<TaskFolder> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-task-'));
  const dir = path.join(root, name);
  await mkdir(dir);
  for (const [relative, content] of Object.entries(files)) {
    const file = path.join(dir, relative);
    await mkdir(path.dirname(file), { recursive: true });
    if (typeof content === 'object' && 'linkTo' in content) await symlink(content.linkTo, file);
    else await writeFile(file, content);
  }
  return {
    dir,
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

/** The same files without some. */
export function without(files: FolderFiles, ...names: readonly string[]): FolderFiles {
  return Object.fromEntries(Object.entries(files).filter(([name]) => !names.includes(name)));
}
