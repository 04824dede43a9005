import { dirname } from 'node:path/posix';
import type { IFileSystem } from 'just-bash';
import type { FakeFiles, Owner } from './fake-files.ts';

type Name = keyof IFileSystem;

/** Methods that change what lies at their last path, and those that read what lies at their first. */
const writing = new Map<Name, number>([
  ['writeFile', 0],
  ['appendFile', 0],
  ['mkdir', 0],
  ['rm', 0],
  ['cp', 1],
  ['mv', 1],
  ['symlink', 1],
  ['link', 1],
]);
const reading = new Set<Name>(['readFile', 'readFileBytes', 'readFileBuffer']);

/** The file tree as one user may use it. Root may everything; others go by owner and the last digit of the mode. */
export function filesOf(files: FakeFiles, user: Owner): IFileSystem {
  if (user.uid === 0) return files;
  return new Proxy(files, {
    get(target, name: Name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== 'function') return method;
      const call = method.bind(target) as (...args: readonly unknown[]) => unknown;
      const pathIndex = writing.get(name);
      if (pathIndex !== undefined)
        return async (...args: readonly unknown[]) => {
          const path = String(args[pathIndex]);
          const isNew = await assertMayWrite(target, { user, path, name });
          await call(...args);
          if (isNew) target.setOwner(path, user);
        };
      if (name === 'chmod')
        return async (path: string, mode: number) => {
          if (target.owner(path).uid !== user.uid) throw denied(name, path);
          await target.chmod(path, mode);
        };
      if (reading.has(name))
        return async (...args: readonly unknown[]) => {
          const path = String(args[0]);
          const { mode } = await target.stat(path);
          if (!(mode & 0o004) && target.owner(path).uid !== user.uid) throw denied(name, path);
          return await call(...args);
        };
      return call;
    },
  });
}

/** Whether the call makes something new. */
async function assertMayWrite(
  files: FakeFiles,
  { user, path, name }: { readonly user: Owner; readonly path: string; readonly name: Name },
): Promise<boolean> {
  if (path === '/dev/null') return false;
  const exists = await files.exists(path);
  const isContent = exists && (name === 'writeFile' || name === 'appendFile');
  let judged = isContent ? path : dirname(path);
  while (judged !== '/' && !(await files.exists(judged))) judged = dirname(judged);
  const { mode } = await files.stat(judged);
  if (!(mode & 0o002) && files.owner(judged).uid !== user.uid) throw denied(name, path);
  return !exists;
}

function denied(name: string, path: string): Error {
  return Object.assign(new Error(`EACCES: permission denied, ${name} '${path}'`), {
    code: 'EACCES',
  });
}
