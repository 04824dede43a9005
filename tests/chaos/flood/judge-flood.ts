import { tenantWeights, type FloodEvidence } from './flood.ts';

export interface FloodLimits {
  /** How far a share of the starts may be from its weight, as a part of it, while all tenants had some waiting inside. null = not judged. */
  readonly startTolerance: number | null;
  /** The same of the ends while all had clients outside: it needs clients that all come back, and before the queue is empty. null = not judged. */
  readonly endTolerance: number | null;
  /** Milliseconds at the 99th percentile; null = times are not judged. */
  readonly times: { readonly refusal: number; readonly control: number } | null;
}

/** What was not as it must be; empty = everything was. */
export function judgeFlood(evidence: FloodEvidence, limits: FloodLimits): readonly string[] {
  return [
    ...judgeClients(evidence),
    ...judgeCapacities(evidence),
    ...judgeServer(evidence),
    ...(limits.startTolerance === null
      ? []
      : judgeShares('starts', evidence.server?.contestedStarts ?? {}, limits.startTolerance)),
    ...(limits.endTolerance === null
      ? []
      : judgeShares('ends', evidence.contestedEnds, limits.endTolerance)),
    ...(limits.times === null ? [] : judgeTimes(evidence, limits.times)),
  ];
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Part of all of them. */
export function sharesOf(counts: Readonly<Record<string, number>>): ReadonlyMap<string, number> {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return new Map(Object.entries(counts).map(([name, count]) => [name, count / all]));
}

function judgeClients(evidence: FloodEvidence): readonly string[] {
  const { clients, accepted, options, lost, badProbes } = evidence;
  const impatient = options.submissions - (options.patient ?? options.submissions);
  return [
    ...(clients.isDone ? [] : ['the clients did not come to an end']),
    ...clients.errors.slice(0, 3),
    ...clients.otherStatuses.slice(0, 3).map((status) => `a submission was answered ${status}`),
    ...(accepted + clients.wentAway === options.submissions
      ? []
      : [`${accepted} of ${options.submissions} clients were accepted, ${clients.wentAway} left`]),
    ...(clients.wentAway <= impatient ? [] : ['clients left that would have waited']),
    ...(lost.length === 0 ? [] : [`${lost.length} rollouts have no end, ${lost[0]} for one`]),
    ...(clients.refusedMs.length > 0 ? [] : ['nobody was refused: it was no flood']),
    ...badProbes.slice(0, 3),
  ];
}

function judgeCapacities({ capacities, options }: FloodEvidence): readonly string[] {
  const { maxConcurrent, maxQueueDepth, leastReads } = options;
  const limit = maxConcurrent + maxQueueDepth;
  const wrong = capacities.filter(
    ({ max_concurrent, max_queue_depth, in_flight, queue_depth, available, accepting }) =>
      max_concurrent !== maxConcurrent ||
      max_queue_depth !== maxQueueDepth ||
      in_flight > limit ||
      queue_depth !== Math.max(0, in_flight - maxConcurrent) ||
      available !== Math.max(0, limit - in_flight) ||
      accepting !== available > 0,
  );
  return [
    ...(capacities.length >= leastReads ? [] : [`only ${capacities.length} reads of capacity`]),
    ...(wrong.length === 0
      ? []
      : [`${wrong.length} capacities are wrong, for one ${JSON.stringify(wrong[0])}`]),
  ];
}

function judgeServer({
  server,
  options,
  capacities,
  mostExecuting,
}: FloodEvidence): readonly string[] {
  if (server === null) return ['the server did not say what it counted'];
  const { maxConcurrent, maxQueueDepth } = options;
  const limit = maxConcurrent + maxQueueDepth;
  return [
    ...(server.capacityReads >= capacities.length ? [] : ['not every capacity was looked at']),
    ...(server.mismatches === 0 ? [] : [`${server.mismatches} capacities were not the counter`]),
    ...(server.mostHeld <= limit ? [] : [`${server.mostHeld} reservations of ${limit}`]),
    ...(server.mostHeld === limit ? [] : [`it was never full: ${server.mostHeld} of ${limit}`]),
    ...(mostExecuting <= maxConcurrent ? [] : [`${mostExecuting} executed, ${maxConcurrent} may`]),
    ...(mostExecuting > 0 ? [] : ['nobody has seen anything executed']),
    // One that was just put may not have been taken although a place is free.
    ...(server.mostQueued <= limit ? [] : [`${server.mostQueued} were queued`]),
  ];
}

function judgeShares(
  what: string,
  counts: Readonly<Record<string, number>>,
  tolerance: number,
): readonly string[] {
  const shares = sharesOf(counts);
  const weight = Object.values(tenantWeights).reduce((sum, one) => sum + one, 0);
  return Object.entries(tenantWeights).flatMap(([name, one]) => {
    const fair = one / weight;
    const share = shares.get(name) ?? Number.NaN;
    return Math.abs(share - fair) <= tolerance * fair
      ? []
      : [`tenant ${name} had ${(100 * share).toFixed(1)} % of ${what} instead of ${100 * fair} %`];
  });
}

function judgeTimes(
  { clients, healthMs, cancelMs }: FloodEvidence,
  { refusal, control }: { readonly refusal: number; readonly control: number },
): readonly string[] {
  const rows = [
    ['refusals', clients.refusedMs, refusal],
    ['health', healthMs, control],
    ['cancellations', cancelMs, control],
  ] as const;
  return rows.flatMap(([what, values, limit]) => {
    const p99 = quantile(values, 0.99);
    return p99 < limit ? [] : [`${what} took ${p99.toFixed(1)} ms at p99, more than ${limit}`];
  });
}
