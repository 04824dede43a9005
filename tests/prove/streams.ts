/**
 * Must show: 1,024 rollouts live at once, each with a stream of five events a second, for ten minutes, while ten of them in a second are aborted at random and
 * replaced: no connection error, no stream, key, capture or socket left, memory flat, event loops and control calls fast throughout; with the gateway in the server's
 * process and in two of its own. With a gateway that forgets every third abort the proof fails. `MINUTES=N` for each, `WORKERS=0,2`, `LIVE=N` and `ABORTS=N` choose;
 * `QUIET=0` does not judge times and memory: they are those of a machine that does nothing else.
 */
import {
  controlCalls,
  growths,
  judgeStreams,
  lateShares,
  nameOf,
  quantile,
  type StreamsLimits,
} from '../chaos/streams/judge-streams.ts';
import { runStreams, type Sample, type StreamsOptions } from '../chaos/streams/streams.ts';

const numberOf = (name: string, usual: number): number => Number(process.env[name] ?? usual);
const live = numberOf('LIVE', 1_024);
const minutes = numberOf('MINUTES', 10);
const workerCounts = (process.env['WORKERS'] ?? '0,2').split(',').map(Number);
const isQuiet = process.env['QUIET'] !== '0';
/** Five in a second; a rollout that is replaced misses some. */
const leastEvents = Math.round(0.9 * 5 * live * minutes * 60);
const limits: StreamsLimits = {
  live,
  quiet: isQuiet ? { leastEvents, controlP99Ms: 100, lagP99Ms: 50, growthMb: 32 } : null,
};
const common: Omit<StreamsOptions, 'workers'> = {
  ...{ live, ms: minutes * 60_000, abortsPerSecond: numberOf('ABORTS', 10) },
  ...{ eventEveryMs: 200, eventsPerStream: 150, seed: numberOf('SEED', 6) },
  ...{ warmMs: Math.min(20_000, minutes * 6_000), settleMs: 30_000 },
};

const problems: string[] = [];
const say = (text: string): void => console.log(text);
const whole = (values: readonly number[]): string => values.map((v) => v.toFixed(0)).join(' ');

let told = 0;
function tell({ atMs, rssMb, lag }: Sample): void {
  if (atMs < told) return;
  told = atMs + (minutes < 2 ? 0 : 60_000);
  const late = lag.map(({ p90, p99, max }) => whole([p90, p99, max])).join(', ');
  say(
    `  ${(atMs / 60_000).toFixed(1)} min: ${whole(rssMb)} MiB, loops late by p90, p99, max ${late} ms`,
  );
}

for (const workers of workerCounts) {
  say(`${live} rollouts, ${workers} processes of the gateway, ${minutes} min`);
  told = 0;
  const evidence = await runStreams({ ...common, workers, onSample: tell });
  const { agents, aborts, leastOpen, controlMs } = evidence;
  say(
    `  ${agents.streams} streams, ${agents.events} events, ${aborts} aborts, never fewer than ${leastOpen} open; an event came after p50 ${agents.delayMs.p50.toFixed(1)} ms, p99 ${agents.delayMs.p99.toFixed(1)} ms`,
  );
  for (const call of controlCalls) {
    const [p50, p99, max] = [0.5, 0.99, 1].map((share) => quantile(controlMs[call], share));
    say(
      `  ${call}: ${controlMs[call].length} calls, p50 ${p50?.toFixed(1)} ms, p99 ${p99?.toFixed(1)} ms, max ${max?.toFixed(0)} ms`,
    );
  }
  const growth = growths(evidence);
  lateShares(evidence, 50).forEach((share, process) =>
    say(
      `  ${nameOf(process)}: at most ${(100 * share).toFixed(2)} % of the time later than 50 ms; the floor of its memory ${growth[process]?.toFixed(1)} MiB higher in the last third than in the second`,
    ),
  );
  say(`  left at the end: ${JSON.stringify(evidence.left)}`);
  const found = judgeStreams(evidence, limits);
  for (const problem of found.slice(0, 20)) say(`  PROBLEM ${problem}`);
  problems.push(...found);
}

const leaky = await runStreams({
  ...{ ...common, workers: 0, variant: 'leaky', live: 30, ms: 2_000, settleMs: 8_000 },
  eventsPerStream: 100_000,
});
const signs = [/went on after its end/, /\d+ streams/, /\d+ routes/, /\d+ calls/, /\d+ sockets/];
const seen = judgeStreams(leaky, { live: 30, quiet: null });
const missed = signs.filter((sign) => !seen.some((problem) => sign.test(problem)));
say(`control, every third abort is forgotten: ${missed.length === 0 ? 'found' : 'NOT FOUND'}`);
for (const sign of missed) problems.push(`the control did not find ${sign.source}`);

say(
  problems.length === 0 ? 'nothing was left of any stream' : `FAILED: ${problems.length} problems`,
);
if (problems.length > 0) process.exitCode = 1;
