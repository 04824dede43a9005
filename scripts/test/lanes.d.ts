export function inLanes(jobs: readonly (() => Promise<void>)[], width: number): Promise<void>;
