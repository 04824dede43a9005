/**
 * Links of foreign trees. A symbolic link is taken only when it stays inside the tree whatever the other links are: relative, with
 * `..` only in front, and not above the root. By induction no chain of such links leaves the tree.
 */
import { lstat, readdir, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { RolloutError } from '../../core/errors.ts';

/** `link` is the POSIX path of the link inside its tree. */
export function staysInside(link: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\\')) return false;
  const parts = target.split('/');
  const firstName = parts.findIndex((part) => part !== '..' && part !== '.' && part !== '');
  if (firstName !== -1 && parts.slice(firstName).includes('..')) return false;
  const resolved = posix.normalize(posix.join(posix.dirname(link), target));
  return resolved !== '..' && !resolved.startsWith('../');
}

/** Throws ARCHIVE_UNSAFE for a link that leaves `root` and for anything but files, folders and links. `skip` names entries of the root. */
export async function refuseUnsafeTree(root: string, skip: ReadonlySet<string>): Promise<void> {
  const pending = [''];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const name of await readdir(join(root, folder))) {
      if (folder === '' && skip.has(name)) continue;
      const path = posix.join(folder, name);
      const status = await lstat(join(root, path));
      if (status.isDirectory()) pending.push(path);
      else if (status.isSymbolicLink()) {
        if (!staysInside(path, await readlink(join(root, path))))
          throw unsafe(`the link ${path} leaves its folder`);
      } else if (!status.isFile()) throw unsafe(`${path} is neither file, folder nor link`);
    }
  }
}

export function unsafe(message: string): RolloutError {
  return new RolloutError('ARCHIVE_UNSAFE', message, {
    phase: 'resolve',
    remedy: 'Do not use this content; tell its author.',
  });
}
