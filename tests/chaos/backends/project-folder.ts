/** A project of a user with everything that it imports, as it is brought into sandboxes: the packages come from the cache that `npm run setup -- tests` filled. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

export interface ProjectFolder extends AsyncDisposable {
  readonly dir: string;
}

export async function projectFolder(parts: readonly string[]): Promise<ProjectFolder> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-project-'));
  for (const part of parts) await cp(part, dir, { recursive: true });
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}
