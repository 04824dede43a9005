import picomatch from 'picomatch';

interface Rule {
  readonly isException: boolean;
  readonly matches: (path: string) => boolean;
}

const syntax = { dot: true, nobrace: true, noextglob: true, nonegate: true } as const;

/**
 * `.dockerignore` as Docker reads it: patterns are anchored at the context's root, the last match wins, a matched folder takes its
 * content with it, and `!` brings files back even from a folder that is left out. (Not `.gitignore`, which differs in all four.)
 */
export class DockerIgnore {
  readonly #rules: readonly Rule[];

  constructor(text: string) {
    this.#rules = text
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const isException = line.startsWith('!');
        const pattern = normalise(isException ? line.slice(1) : line);
        return { isException, matches: picomatch(pattern, syntax) };
      });
  }

  /** Whether a folder that is left out may hold files that are brought back. */
  get hasExceptions(): boolean {
    return this.#rules.some((rule) => rule.isException);
  }

  /** `path` is relative to the context, with `/`. */
  leavesOut(path: string): boolean {
    const parts = path.split('/');
    const prefixes = parts.map((_part, index) => parts.slice(0, index + 1).join('/'));
    let isOut = false;
    for (const rule of this.#rules)
      if (isOut === rule.isException && prefixes.some((prefix) => rule.matches(prefix)))
        isOut = !rule.isException;
    return isOut;
  }
}

function normalise(pattern: string): string {
  const parts = pattern
    .trim()
    .split('/')
    .filter((part) => part !== '' && part !== '.');
  return parts.join('/');
}
