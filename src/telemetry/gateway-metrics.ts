import { Gauge, type Registry } from 'prom-client';
import type { GatewayFacts, LagQuantile } from './facts.ts';

type Row = readonly [
  name: string,
  help: string,
  /** null = there is no such number of it. */
  read: (facts: GatewayFacts) => number | null,
];

const ofAll: readonly Row[] = [
  ['routes', 'Rollouts whose key is alive.', ({ routes }) => routes],
  ['calls_running', 'Model calls under way.', ({ callsRunning }) => callsRunning],
];

type OwnRow = readonly [
  name: string,
  help: string,
  read: (own: NonNullable<GatewayFacts['own']>) => number,
];

const ofProcesses: readonly OwnRow[] = [
  ['up', '1 = the process serves calls.', ({ isUp }) => Number(isUp)],
  ['restarts_total', 'How often it was started again.', ({ restarts }) => restarts],
  ['resident_memory_bytes', 'Its memory.', ({ vitals }) => vitals?.residentBytes ?? 0],
  ['cpu_seconds_total', 'Its processor time.', ({ vitals }) => vitals?.cpuSeconds ?? 0],
];

const quantiles: readonly LagQuantile[] = ['p50', 'p90', 'p99', 'max'];

/** The gateway, by process: `server` where it has none of its own. Nothing is read that is not known already. */
export function addGatewayMetrics(registry: Registry, read: () => readonly GatewayFacts[]): void {
  const registers = [registry];
  const add = (prefix: string, [name, help, value]: Row): void => {
    const gauge: Gauge = new Gauge({
      ...{ name: `slipway_gateway_${prefix}${name}`, help, labelNames: ['worker'], registers },
      collect: () => {
        for (const facts of read()) {
          const number = value(facts);
          if (number !== null) gauge.set({ worker: facts.worker }, number);
        }
      },
    });
  };
  for (const row of ofAll) add('', row);
  for (const [name, help, value] of ofProcesses)
    add('worker_', [name, help, ({ own }) => (own === null ? null : value(own))]);
  const lag: Gauge = new Gauge({
    name: 'slipway_gateway_worker_event_loop_lag_seconds',
    help: 'How late its event loop was in the last seconds.',
    labelNames: ['worker', 'quantile'],
    registers,
    collect: () => {
      for (const { worker, own } of read())
        if (own !== null)
          for (const quantile of quantiles)
            lag.set({ worker, quantile }, own.vitals?.lag[quantile] ?? 0);
    },
  });
}
