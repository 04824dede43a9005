/** Fixtures of the gateway's dialects: one JSON document per file, `<CASE>-<slug>.json`, in a folder per dialect under `tests/golden/gateway`. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const golden = path.join(import.meta.dirname, '../golden/gateway');

/** What every fixture has; the rest is its direction's. */
export interface GoldenCase {
  /** As in `case-list.ts`. */
  readonly case: string;
  /** A sentence: what is right. */
  readonly title: string;
  readonly direction: 'request' | 'stream' | 'whole' | 'error' | 'served';
}

/** All fixtures of a folder, which knows their further fields; a file that is none throws and names itself. */
export function loadCases(folder: string): readonly GoldenCase[] {
  const dir = path.join(golden, folder);
  return readdirSync(dir)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const document = JSON.parse(readFileSync(path.join(dir, name), 'utf8')) as GoldenCase;
      if (!name.startsWith(`${document.case}-`))
        throw new Error(`${folder}/${name} says that it is of the case ${document.case}`);
      if (typeof document.title !== 'string' || document.title.length < 10)
        throw new Error(`${folder}/${name} has no title`);
      return document;
    });
}

export function goldenFolders(): readonly string[] {
  return readdirSync(golden, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}
