/**
 * Preloaded into a process that is measured (`node --import`): every few milliseconds its lag, every moment its memory and processor time, kept in
 * memory and written to the file named by BENCH_PROBE when it ends.
 */
import { writeFileSync } from 'node:fs';

export interface ProbeSample {
  /** Wall clock, ms. */
  readonly at: number;
  /** How much later than asked a timer fired, ms. */
  readonly lagMs: number;
}

export interface ProbeMoment {
  readonly at: number;
  readonly rssBytes: number;
  readonly cpuMs: number;
}

export interface ProbeReport {
  readonly lags: readonly ProbeSample[];
  readonly moments: readonly ProbeMoment[];
}

const lagEveryMs = 10;
const momentEveryMs = 200;

const file = process.env['BENCH_PROBE'];
if (file !== undefined) {
  delete process.env['BENCH_PROBE']; // children are not measured
  const lags: ProbeSample[] = [];
  const moments: ProbeMoment[] = [];
  let due = performance.now() + lagEveryMs;
  const tick = (): void => {
    const now = performance.now();
    lags.push({ at: Date.now(), lagMs: Math.max(0, now - due) });
    due = now + lagEveryMs;
    setTimeout(tick, lagEveryMs).unref();
  };
  setTimeout(tick, lagEveryMs).unref();
  const look = (): void => {
    const { user, system } = process.cpuUsage();
    moments.push({
      at: Date.now(),
      rssBytes: process.memoryUsage.rss(),
      cpuMs: (user + system) / 1000,
    });
  };
  setInterval(look, momentEveryMs).unref();
  process.once('exit', () => {
    look();
    const report: ProbeReport = { lags, moments };
    writeFileSync(file, JSON.stringify(report));
  });
}
