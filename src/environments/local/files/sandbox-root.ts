/**
 * Looks up a path of the sandbox from the host as the sandbox itself would, links and `..` included, but by our own hand and
 * never above the sandbox's root.
 */
import { RolloutError } from '../../../core/errors.ts';
import { OpenFolder, type FileName } from './open-folder.ts';

const maxLinks = 40;

/** A place in the sandbox: an open folder and a name in it, which may not exist. */
export interface Place extends Disposable {
  readonly parent: OpenFolder;
  /** null = the root itself. */
  readonly name: FileName | null;
}

export class SandboxRoot {
  readonly #path: string;

  /** @param path The root as the host sees it. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The folder at an absolute path. Links are followed inside the root. ENOENT, ENOTDIR, ELOOP as the system says them. */
  folder(path: string, options: { readonly isCreated?: boolean } = {}): OpenFolder {
    const walk = new Walk(OpenFolder.at(this.#path), options.isCreated ?? false);
    return walk.to(split(path));
  }

  /** The parent of the last component, which is not looked at. */
  place(path: string, options: { readonly areParentsCreated?: boolean } = {}): Place {
    const parts = split(path).filter((part) => part.length > 0 && part.toString() !== '.');
    const last = parts.at(-1);
    if (last?.toString() === '..') throw badPath(path);
    const walk = new Walk(OpenFolder.at(this.#path), options.areParentsCreated ?? false);
    const parent = walk.to(parts.slice(0, -1));
    return { parent, name: last ?? null, [Symbol.dispose]: () => parent[Symbol.dispose]() };
  }
}

class Walk {
  readonly #stack: OpenFolder[];
  readonly #isCreating: boolean;
  #links = 0;

  constructor(root: OpenFolder, isCreating: boolean) {
    this.#stack = [root];
    this.#isCreating = isCreating;
  }

  /** Takes the components; the result is the caller's, everything else is closed. */
  to(parts: readonly Buffer[]): OpenFolder {
    try {
      const todo = [...parts].reverse();
      for (let part = todo.pop(); part !== undefined; part = todo.pop()) this.#step(part, todo);
      const found = this.#stack.pop();
      if (found === undefined) throw new Error('the root is never left');
      return found;
    } finally {
      for (const folder of this.#stack) folder[Symbol.dispose]();
    }
  }

  #step(part: Buffer, todo: Buffer[]): void {
    const text = part.toString('latin1');
    if (text === '' || text === '.') return;
    if (text === '..') {
      if (this.#stack.length > 1) this.#stack.pop()?.[Symbol.dispose]();
      return;
    }
    const top = this.#stack.at(-1);
    if (top === undefined) throw new Error('the root is never left');
    using entry = top.pin(part);
    if (entry?.stats.isSymbolicLink() === true) {
      this.#links += 1;
      if (this.#links > maxLinks) throw systemError('ELOOP', 'too many links');
      const target = top.linkTarget(part);
      if (target[0] === slash) for (const folder of this.#stack.splice(1)) folder[Symbol.dispose]();
      todo.push(...splitBytes(target).reverse());
    } else if (entry === null && this.#isCreating) this.#stack.push(top.ensureFolder(part));
    else this.#stack.push(top.folder(part));
  }
}

const slash = 0x2f;

function split(path: string): Buffer[] {
  if (!path.startsWith('/') || path.includes('\0')) throw badPath(path);
  return splitBytes(Buffer.from(path));
}

function splitBytes(path: Buffer): Buffer[] {
  return path
    .toString('latin1')
    .split('/')
    .map((part) => Buffer.from(part, 'latin1'));
}

function badPath(path: string): RolloutError {
  return new RolloutError('TRANSFER_FAILED', `"${path}" is not an absolute path in the sandbox`, {
    phase: 'environment',
    retryable: false,
    remedy: 'Give an absolute path without a trailing "..".',
  });
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}
