/**
 * `npm run bench -- collector [trials|abort]`: trials per minute at 256 concurrent rollouts of null agents through collector, server, gateway and engine; and how long it
 * takes from the begin of an abort until nothing of 64 and of 256 live rollouts is left, beside the sequence that Miles publishes, without a hook of the agent,
 * under the same agents. Rounds are interleaved. `BENCH_SIZE=short` is one round.
 */
import { abortToQuiet, type AbortKind, type Quiet } from './collector/abort-to-quiet.ts';
import { trialsPerMinute } from './collector/trials-per-minute.ts';
import { report, reportWhenLate, type Figure, type Goal } from './report.ts';
import { median, quantile } from './samples.ts';
import { sized } from './size.ts';

const concurrency = 256;
const trials = sized(2_048, 1_024);
const rounds = sized(3, 1);
const paceGoal = 1_500;
const quietGoalMs = 2_000;
const kinds: readonly AbortKind[] = ['ours', 'miles'];
const names: Record<AbortKind, string> = { ours: 'ours', miles: "Miles' sequence, no hook" };

const wanted = process.argv[2] ?? 'all';
const figures: Figure[] = [];
const goals: Goal[] = [];
reportWhenLate('collector', () => ({ figures, goals }));

async function measurePace(): Promise<void> {
  const paces: Awaited<ReturnType<typeof trialsPerMinute>>[] = [];
  for (let round = 0; round < rounds; round += 1)
    paces.push(await trialsPerMinute(concurrency, trials));
  figures.push({
    name: 'processor time of the server per trial',
    value: median(paces.map(({ serverMsPerTrial }) => serverMsPerTrial)),
    unit: 'ms',
  });
  goals.push({
    name: `trials per minute, ${concurrency} at once`,
    measured: median(paces.map((pace) => pace.trialsPerMinute)),
    ...{ limit: paceGoal, direction: 'at least', unit: '/min' },
  });
}

async function measureAborts(live: number): Promise<void> {
  const found: Record<AbortKind, Quiet[]> = { ours: [], miles: [] };
  for (let round = 0; round < rounds; round += 1)
    for (const kind of kinds) found[kind].push(await abortToQuiet(kind, live));
  const late = (kind: AbortKind): number =>
    found[kind].reduce((sum, { callsLate }) => sum + callsLate, 0);
  const p99 = (kind: AbortKind): number =>
    quantile(
      found[kind].flatMap(({ rolloutMs }) => rolloutMs),
      0.99,
    );
  for (const kind of kinds) {
    const name = `${live} live, ${names[kind]}`;
    const times = found[kind].flatMap(({ rolloutMs }) => rolloutMs);
    figures.push(
      { name: `${name}: a rollout has ended, p50`, value: quantile(times, 0.5), unit: 'ms' },
      { name: `${name}: a rollout has ended, p99`, value: p99(kind), unit: 'ms' },
      {
        name: `${name}: all is quiet`,
        value: median(found[kind].map(({ allMs }) => allMs)),
        unit: 'ms',
      },
      { name: `${name}: calls later than a second`, value: late(kind), unit: 'calls' },
    );
  }
  goals.push(
    {
      name: `${live} live: abort to quiet, p99`,
      ...{ measured: p99('ours'), limit: quietGoalMs, direction: 'at most', unit: 'ms' },
    },
    {
      name: `${live} live: calls later than a second after the abort began`,
      ...{ measured: late('ours'), limit: 0, direction: 'at most', unit: 'calls' },
    },
    {
      name: `${live} live: the same calls without the hook, the control`,
      ...{ measured: late('miles'), limit: 1, direction: 'at least', unit: 'calls' },
    },
  );
}

if (wanted !== 'abort') await measurePace();
if (wanted !== 'trials') for (const live of [64, 256]) await measureAborts(live);
report('collector', { figures, goals });
