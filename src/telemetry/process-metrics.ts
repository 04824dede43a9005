import { monitorEventLoopDelay, type Histogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

const resolutionMs = 10;
const quantiles = { p50: 50, p90: 90, p99: 99, max: 100 } as const;
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

function lateSeconds(delay: Histogram, percent: number): number {
  if (delay.count === 0) return 0;
  // The histogram counts the interval of its own timer too.
  return Math.max(0, delay.percentile(percent) / 1e6 - resolutionMs) / 1_000;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
