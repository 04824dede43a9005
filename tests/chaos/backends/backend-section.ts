/** Rollouts of one backend in full, from a controller over the server to the callbacks and the archive; a seeded few of them run in every test run. */
export interface SectionReport {
  /** Rollouts that ended as they had to. */
  readonly right: number;
  /** What was not so, each with the rollout's id. */
  readonly problems: readonly string[];
}

export interface BackendSection {
  readonly name: string;
  run(count: number): Promise<SectionReport>;
}
