/** What is wrong with what was seen of streams; empty = nothing. */
import type { ControlCall, Lag, StreamsEvidence } from './streams.ts';

export interface StreamsLimits {
  readonly live: number;
  /** null = times and memory are not judged: too short, or a machine that does other things too. */
  readonly quiet: {
    /** That agents read while nobody else has the machine. */
    readonly leastEvents: number;
    readonly controlP99Ms: number;
    readonly lagP99Ms: number;
    /** Of the floor. */
    readonly growthMb: number;
  } | null;
}

export function judgeStreams(evidence: StreamsEvidence, limits: StreamsLimits): readonly string[] {
  const { agents, left, refusals, restarts, printed, leastOpen } = evidence;
  const { live, quiet } = limits;
  return [
    ...agents.errors.map((error) => `connection error: ${error}`),
    ...agents.outlived.map((id) => `${id}: its stream went on after its end`),
    ...refusals,
    ...Object.entries(left).flatMap(([what, count]) =>
      count === 0 ? [] : [`left at the end: ${count} ${what}`],
    ),
    ...(restarts === 0 ? [] : [`${restarts} processes of the gateway died`]),
    ...(/MaxListenersExceeded|Error:/.test(printed) ? [`the server printed: ${printed}`] : []),
    // One is replaced by another at any moment.
    ...(leastOpen < live * 0.9 ? [`only ${leastOpen} of ${live} streams were open`] : []),
    ...(quiet === null ? [] : judgeQuiet(evidence, quiet)),
  ];
}

function judgeQuiet(
  evidence: StreamsEvidence,
  limits: NonNullable<StreamsLimits['quiet']>,
): readonly string[] {
  const { leastEvents, controlP99Ms, lagP99Ms, growthMb } = limits;
  const { events } = evidence.agents;
  const slow = controlCalls.flatMap((call) => {
    const p99 = quantile(evidence.controlMs[call], 0.99);
    return p99 <= controlP99Ms ? [] : [`${call}: p99 ${p99.toFixed(1)} ms`];
  });
  const late = lateShares(evidence, lagP99Ms).flatMap((share, process) =>
    share <= 0.01
      ? []
      : [`${nameOf(process)}: up to ${(100 * share).toFixed(2)} % later than ${lagP99Ms} ms`],
  );
  const grown = growths(evidence).flatMap((mb, process) =>
    mb <= growthMb ? [] : [`${nameOf(process)}: grew by ${mb.toFixed(1)} MiB`],
  );
  const missing = events >= leastEvents ? [] : [`only ${events} of ${leastEvents} events came`];
  return [...missing, ...slow, ...late, ...grown];
}

export const controlCalls: readonly ControlCall[] = [
  ...(['submit', 'abort', 'status', 'health', 'data health'] as const),
];

export function nameOf(process: number): string {
  return process === 0 ? 'server' : `worker ${process}`;
}

/**
 * By process: at most how large a share of its moments the event loop was later than `ms`. Each window tells four quantiles; what lies between two of them
 * is counted as late as a whole.
 */
export function lateShares({ samples }: StreamsEvidence, ms: number): readonly number[] {
  const count = samples[0]?.lag.length ?? 0;
  return Array.from({ length: count }, (_, process) => {
    const shares = samples.flatMap(({ lag }) => {
      const own = lag[process];
      return own === undefined ? [] : [lateShare(own, ms)];
    });
    return shares.reduce((sum, share) => sum + share, 0) / shares.length;
  });
}

function lateShare({ p50, p90, p99, max }: Lag, ms: number): number {
  if (max <= ms) return 0;
  if (p99 <= ms) return 0.01;
  if (p90 <= ms) return 0.1;
  return p50 <= ms ? 0.5 : 1;
}

/** By process, in MiB: how much higher the floor of the last third of the time is than that of the second. Garbage comes and goes above it. */
export function growths({ samples }: StreamsEvidence): readonly number[] {
  const third = Math.floor(samples.length / 3);
  const count = samples[0]?.rssMb.length ?? 0;
  return Array.from({ length: count }, (_, process) => {
    const of = (part: StreamsEvidence['samples']): number =>
      quantile(
        part.map(({ rssMb }) => rssMb[process] ?? Number.NaN),
        0.1,
      );
    return of(samples.slice(-third)) - of(samples.slice(third, 2 * third));
  });
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
