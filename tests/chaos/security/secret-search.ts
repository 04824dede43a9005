/** Looks for known secrets where none may be. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface Find {
  readonly secret: string;
  readonly place: string;
}

/** Secrets by what they are, so that a find says which one it is without repeating it. */
export type Secrets = ReadonlyMap<string, string>;

export function findIn(text: string | Buffer, place: string, secrets: Secrets): Find[] {
  const has = (part: string): boolean => text.includes(part);
  const all = [...secrets].map(([secret, value]) => ({ secret, forms: spellings(value) }));
  // Most texts hold not even the beginning of one.
  const beginnings = new Set(all.flatMap(({ forms }) => forms.map((form) => form.slice(0, 8))));
  if (![...beginnings].some(has)) return [];
  return all.filter(({ forms }) => forms.some(has)).map(({ secret }) => ({ secret, place }));
}

function spellings(value: string): readonly string[] {
  return [
    value,
    Buffer.from(value).toString('base64').replace(/=+$/, ''),
    encodeURIComponent(value),
  ];
}

/** Every file below `dir` for which `isLooked`, and the names of all. A server at work removes what it needs no more. */
export function findBelow(
  dir: string,
  secrets: Secrets,
  isLooked: (relative: string) => boolean,
): Find[] {
  return entriesBelow(dir, '').flatMap(({ relative, isFile }) => {
    const finds = findIn(relative, `name ${relative}`, secrets);
    if (!isLooked(relative) || !isFile) return finds;
    const content = unlessGone(() => readFileSync(path.join(dir, relative)), Buffer.of());
    return [...finds, ...findIn(content, relative, secrets)];
  });
}

function entriesBelow(dir: string, below: string): { relative: string; isFile: boolean }[] {
  const entries = unlessGone(
    () => readdirSync(path.join(dir, below), { withFileTypes: true }),
    below === '' ? undefined : [],
  );
  return entries.flatMap((entry) => {
    const relative = path.join(below, entry.name);
    const own = { relative, isFile: entry.isFile() };
    return entry.isDirectory() ? [own, ...entriesBelow(dir, relative)] : [own];
  });
}

function unlessGone<T>(read: () => T, otherwise: T | undefined): T {
  try {
    return read();
  } catch (cause) {
    if (otherwise === undefined || (cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    return otherwise;
  }
}

/** Command lines and variables of every process of this machine that can be read, but those of this one. */
export function findInProcesses(secrets: Secrets): Find[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) =>
      ['cmdline', 'environ'].flatMap((name) => {
        try {
          return findIn(readFileSync(`/proc/${pid}/${name}`), `/proc/${pid}/${name}`, secrets);
        } catch {
          // It has ended, or is not ours to read.
          return [];
        }
      }),
    );
}

export function problemsOf(finds: readonly Find[]): string[] {
  return [...new Set(finds.map(({ secret, place }) => `${secret} is in ${place}`))];
}
