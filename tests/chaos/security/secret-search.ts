/** Looks for known secrets where none may be. */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
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

/** Every file below `dir` for which `isLooked`, and the names of all. */
export function findBelow(
  dir: string,
  secrets: Secrets,
  isLooked: (relative: string) => boolean,
): Find[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).flatMap((relative) => {
    const file = path.join(dir, relative);
    const finds = findIn(relative, `name ${relative}`, secrets);
    if (!isLooked(relative)) return finds;
    try {
      if (!lstatSync(file).isFile()) return finds;
      return [...finds, ...findIn(readFileSync(file), relative, secrets)];
    } catch {
      // A server at work removes what it needs no more.
      return finds;
    }
  });
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
