import { fnmatchRegExp } from '../../core/fnmatch.ts';

/**
 * Whether an entry is left out of a copy, by globs as tar reads them: a pattern fits the path relative to the source, or what is left of
 * it behind any folder (`cache` also leaves out `a/b/cache`), and `*` crosses folders. What lies below an excluded folder is
 * the caller's: by not entering it, or by `isBelow` for streams, in which each entry comes with its whole path.
 */
export class ExcludedPaths {
  readonly #patterns: readonly RegExp[];

  constructor(globs: readonly string[]) {
    this.#patterns = globs.map(fnmatchRegExp);
  }

  has(path: string): boolean {
    if (this.#patterns.length === 0) return false;
    const parts = path.split('/');
    return parts.some((_, index) => this.#fits(parts.slice(index).join('/')));
  }

  /** Whether the entry itself or a folder that it lies in is excluded. */
  isBelow(path: string): boolean {
    if (this.#patterns.length === 0) return false;
    const parts = path.split('/');
    return parts.some((_, index) => this.has(parts.slice(0, index + 1).join('/')));
  }

  #fits(text: string): boolean {
    return this.#patterns.some((pattern) => pattern.test(text));
  }
}
