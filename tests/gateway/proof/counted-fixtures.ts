import { caseIds } from '../case-list.ts';
import { goldenFolders, loadCases } from '../golden.ts';

export interface CountedFixtures {
  readonly total: number;
  readonly byFolder: Readonly<Record<string, number>>;
  readonly cases: number;
  /** Cases without any. */
  readonly missing: readonly string[];
}

export function countFixtures(): CountedFixtures {
  const folders = goldenFolders().map((folder) => ({ folder, all: loadCases(folder) }));
  const covered = new Set(folders.flatMap(({ all }) => all.map((each) => each.case)));
  return {
    total: folders.reduce((sum, { all }) => sum + all.length, 0),
    byFolder: Object.fromEntries(folders.map(({ folder, all }) => [folder, all.length])),
    cases: caseIds.length,
    missing: caseIds.filter((id) => !covered.has(id)),
  };
}
