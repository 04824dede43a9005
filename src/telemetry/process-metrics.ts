import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

const resolutionMs = 10;
const quantiles = { p50: 50, p90: 90, p99: 99, max: 100 } as const;
/** Shorter than this apart, scrapes of several readers see the same window. */
const windowMs = 5_000;

/** Event-loop lag since the last window, processor time, memory. What it answers ends the measuring. */
export function addProcessMetrics(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let windowFrom = performance.now();
  const registers = [registry];
  const lag: Gauge = new Gauge({
    name: 'slipway_event_loop_lag_seconds',
    help: 'How late the event loop was since the scrape before.',
    labelNames: ['quantile'],
    registers,
    collect: () => {
      for (const [quantile, percent] of Object.entries(quantiles)) {
        // The histogram counts the interval of its own timer too.
        const lateMs = delay.count === 0 ? 0 : delay.percentile(percent) / 1e6 - resolutionMs;
        lag.set({ quantile }, Math.max(0, lateMs) / 1_000);
      }
      if (performance.now() - windowFrom < windowMs) return;
      windowFrom = performance.now();
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

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
