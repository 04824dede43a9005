import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A file of `bench/` that exports nothing is a bench. The one that needs programs of others comes last. */
export function benchNames(): readonly string[] {
  const dir = path.join(import.meta.dirname, '..');
  return readdirSync(dir)
    .filter((file) => file.endsWith('.ts') && file !== 'all.ts')
    .filter((file) => !/^export /m.test(readFileSync(path.join(dir, file), 'utf8')))
    .map((file) => path.basename(file, '.ts'))
    .sort((a, b) => Number(a === 'gateway') - Number(b === 'gateway'));
}
