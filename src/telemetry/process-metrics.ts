import { monitorEventLoopDelay, type Histogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';
import type { LagQuantile, ProcessVitals } from './facts.ts';

const resolutionMs = 10;
const quantiles: Readonly<Record<LagQuantile, number>> = { p50: 50, p90: 90, p99: 99, max: 100 };
/** A scrape that comes sooner after another one sees its window too: several readers do not take the worst from each other. */
const windowMs = 5_000;

/** Event-loop lag since the last window, processor time, memory. What it answers ends the measuring. */
export function addProcessMetrics(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let windowFrom = performance.now();
  let before: Readonly<Record<string, number>> = {};
  const registers = [registry];
  const lag: Gauge = new Gauge({
    name: 'slipway_event_loop_lag_seconds',
    help: 'How late the event loop was since the scrape before.',
    labelNames: ['quantile'],
    registers,
    collect: () => {
      const now = Object.fromEntries(
        Object.entries(quantiles).map(([quantile, percent]) => [
          quantile,
          lateSeconds(delay, percent),
        ]),
      );
      const isWhole = performance.now() - windowFrom >= windowMs;
      for (const [quantile, late] of Object.entries(now))
        lag.set({ quantile }, isWhole ? late : Math.max(late, before[quantile] ?? 0));
      if (!isWhole) return;
      windowFrom = performance.now();
      before = now;
      delay.reset();
    },
  });
  const gauges: readonly (readonly [name: string, help: string, read: () => number])[] = [
    ['resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss()],
    ['heap_used_bytes', 'Heap in use.', () => process.memoryUsage().heapUsed],
    ['external_memory_bytes', 'Buffers outside the heap.', () => process.memoryUsage().external],
    ['cpu_seconds_total', 'Processor time, user and system.', cpuSeconds],
    ['start_time_seconds', 'When the process began.', () => performance.timeOrigin / 1_000],
  ];
  for (const [name, help, read] of gauges) {
    const gauge: Gauge = new Gauge({
      ...{ name: `process_${name}`, help, registers },
      collect: () => gauge.set(read()),
    });
  }
  return () => delay.disable();
}

/** Of this process; `delay` counts since it was reset. */
export function vitalsOf(delay: Histogram): ProcessVitals {
  const { p50, p90, p99, max } = quantiles;
  return {
    lag: {
      ...{ p50: lateSeconds(delay, p50), p90: lateSeconds(delay, p90) },
      ...{ p99: lateSeconds(delay, p99), max: lateSeconds(delay, max) },
    },
    residentBytes: process.memoryUsage.rss(),
    cpuSeconds: cpuSeconds(),
  };
}

function lateSeconds(delay: Histogram, percent: number): number {
  if (delay.count === 0) return 0;
  // The histogram counts the interval of its own timer too.
  return Math.max(0, delay.percentile(percent) / 1e6 - resolutionMs) / 1_000;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
