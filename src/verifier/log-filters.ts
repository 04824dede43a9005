import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { fnmatch } from '../core/fnmatch.ts';

/** Which files of a log folder are kept, by globs on paths below it. */
export interface LogFilters {
  /** None = everything. */
  readonly include: readonly string[];
  /** Wins over `include`. */
  readonly exclude: readonly string[];
}

/** Removes the files of a downloaded folder that the filters do not keep; `kept` names files that stay in any case. */
export async function applyLogFilters(
  dir: string,
  filters: LogFilters,
  kept: readonly string[],
): Promise<void> {
  if (filters.include.length === 0 && filters.exclude.length === 0) return;
  const matches = (name: string, patterns: readonly string[]): boolean =>
    patterns.some((pattern) => fnmatch(name, pattern));
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const name = path.relative(dir, path.join(entry.parentPath, entry.name));
    if (kept.includes(name)) continue;
    const isIncluded = filters.include.length === 0 || matches(name, filters.include);
    if (!isIncluded || matches(name, filters.exclude)) await rm(path.join(dir, name));
  }
}
