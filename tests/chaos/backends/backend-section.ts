/** Rollouts of one backend in full, from a controller over the server to the callbacks and the archive; a seeded few of them run in every test run. */
export interface SectionReport {
  readonly rollouts: number;
  /** Of them: ended with the reward that was promised, and as they had to otherwise. */
  readonly right: number;
  /** Beside them: rollouts that had to fail, and those of them that failed with the right type and without a reward. */
  readonly failing: number;
  readonly typed: number;
  /** What was not so, each with the rollout's id. */
  readonly problems: readonly string[];
}

export interface BackendSection {
  readonly backend: 'native' | 'harbor' | 'local';
  /** Where the rollouts work. */
  readonly environment: string;
  /** Workflow or agent. */
  readonly works: string;
  run(count: number): Promise<SectionReport>;
}

const headings = [
  'backend',
  'environment',
  'workflow or agent',
  'rollouts',
  'right rewards',
  'typed ends',
];

export function rowOf(section: BackendSection, report: SectionReport): readonly string[] {
  const { rollouts, right, typed, failing } = report;
  const { backend, environment, works } = section;
  return [backend, environment, works, `${rollouts}`, `${right}`, `${typed} of ${failing}`];
}

/** Lines of equal columns, under their headings. */
export function tableOf(sections: readonly (readonly string[])[]): readonly string[] {
  const rows = [headings, ...sections];
  const widths = headings.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

export function isGood({ rollouts, right, failing, typed, problems }: SectionReport): boolean {
  return right === rollouts && typed === failing && problems.length === 0;
}
