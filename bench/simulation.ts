/**
 * `npm run bench -- simulation [REPORT.json]`: how many hosts 1,000, 10,000 and 100,000 live rollouts need by the measured service times, whether a simulated fleet of
 * that size carries them, and what is full first. Figures are those that are kept, or those of a report of `npm run bench -- all`. `DEMAND=1000,10000` chooses.
 */
import { seededRandom } from '../src/core/seeded-random.ts';
import { report, type Figure, type Goal } from './report.ts';
import { costsOf, keptFigures, reportedFigures } from './simulation/figures.ts';
import { simulateFleet, type FleetResult, type FleetWorld } from './simulation/fleet-model.ts';
import { always, exponential, logNormal } from './simulation/laws.ts';
import type { ProviderLimits } from './simulation/provider.ts';
import {
  hostLimits,
  lifeMs,
  livePerHost,
  narrowest,
  type HostKind,
  type Workload,
} from './simulation/sizing.ts';
import { sized } from './size.ts';

const workloads: readonly Workload[] = [
  {
    ...{ name: 'terminal', turns: 30, callMs: 12_000, commandMs: 7_000, verifyMs: 20_000 },
    ...{ eventsPerCall: 250, sandboxMib: 128, taskCpuMs: 10_000 },
  },
  {
    ...{ name: 'coding', turns: 60, callMs: 10_000, commandMs: 8_000, verifyMs: 60_000 },
    ...{ eventsPerCall: 400, sandboxMib: 1_024, taskCpuMs: 120_000 },
  },
  {
    ...{ name: 'short', turns: 3, callMs: 8_000, commandMs: 1_000, verifyMs: 1_000 },
    ...{ eventsPerCall: 200, sandboxMib: 128, taskCpuMs: 1_000 },
  },
];
const host: HostKind = { cores: 16, memoryGib: 64 };
const demands = (process.env['DEMAND'] ?? sized('1000,10000,100000', '1000'))
  .split(',')
  .map(Number);
/** Beside the front end, which is one process whatever the fleet. */
const fullShare = 0.85;
/** Turns under way at once, of worlds that are simulated for long. */
const mostTurns = 600_000;

const reportFile = process.argv[2];
const kept = keptFigures();
const measured = reportFile === undefined ? kept : reportedFigures(kept, reportFile);
const figures: Figure[] = [];
const goals: Goal[] = [];

interface Places {
  readonly hosts: number;
  readonly slots: number;
  readonly provider?: ProviderLimits;
}

function simulate(workload: Workload, live: number, places: Places): FleetResult {
  const random = seededRandom(live + workload.turns);
  const costs = costsOf(measured, workload);
  const perTurn = workload.taskCpuMs / workload.turns;
  const world: FleetWorld = {
    ...{ hosts: places.hosts, slotsPerHost: places.slots, coresPerHost: host.cores },
    costs: { ...costs, turnHostMs: costs.turnHostMs + perTurn },
    turns: () => Math.max(1, Math.round(logNormal(workload.turns, 0.5, random)())),
    modelCall: logNormal(workload.callMs, 0.7, random),
    // What of a command loads a processor is counted there.
    command: exponential(Math.max(0, workload.commandMs - perTurn), random),
    verify: always(workload.verifyMs),
    ...{ engineCalls: Number.POSITIVE_INFINITY, demand: { live }, random },
    provider: places.provider ?? null,
  };
  const lifeTime = lifeMs(workload);
  // What is full settles after whole lives. Of the largest worlds a part must do: nothing of them is full.
  const lives = live * workload.turns <= mostTurns ? 2 : 0.5;
  return simulateFleet(world, { fillMs: lives * lifeTime, measureMs: lifeTime / 4 });
}

function tell(workload: Workload, live: number): void {
  const costs = costsOf(measured, workload);
  const limits = hostLimits(workload, host, costs);
  const slots = livePerHost(limits);
  const hosts = Math.ceil(live / slots);
  const result = simulate(workload, live, { hosts, slots });
  const [first] = result.stations.filter(({ name }) => name !== 'engine');
  const calls = (result.rolloutsPerMin / 60_000) * workload.turns * workload.callMs;
  console.log(
    `${workload.name.padEnd(9)} ${String(live).padStart(7)} live: ${hosts} hosts of ${slots} (by ${narrowest(limits)}); ${result.rolloutsPerMin.toFixed(0)} rollouts/min, ${result.meanRunning.toFixed(0)} running, ${calls.toFixed(0)} model calls at once; ${busy(result)}`,
  );
  const name = `${workload.name}, ${live} live`;
  figures.push(
    { name: `${name}: hosts`, value: hosts, unit: 'hosts' },
    { name: `${name}: fullest, ${first?.name}`, value: 100 * (first?.utilisation ?? 0), unit: '%' },
    { name: `${name}: wait for a place`, value: result.meanWaitMs, unit: 'ms' },
  );
  const frontEnd = result.stations.find((station) => station.name === 'front end');
  // Where the front end is full, more hosts do not help, and the sizing of hosts is not what is to be judged.
  if ((frontEnd?.utilisation ?? 0) > fullShare) {
    figures.push({
      name: `${name}: the front end carries`,
      value: result.meanRunning,
      unit: 'live',
    });
    return;
  }
  goals.push({
    ...{ name: `${name}: running, over what was asked for`, measured: result.meanRunning / live },
    ...{ limit: 0.95, direction: 'at least', unit: '×' },
  });
  const hostParts = result.stations.filter(({ name: part }) => part.includes(' of '));
  goals.push({
    name: `${name}: the fuller of processors and threads`,
    measured: 100 * Math.max(...hostParts.map(({ utilisation }) => utilisation)),
    ...{ limit: 80, direction: 'at most', unit: '%' },
  });
}

/** Sandboxes of a provider that allows so many creates in a second: what it carries of a demand, and what the demand would need. */
function tellProvider(workload: Workload, live: number, createsPerSec: number): void {
  const provider = { createsPerSec, maxLive: Number.POSITIVE_INFINITY, createMs: always(2_000) };
  const slots = 500;
  const places = { hosts: Math.ceil(live / slots), slots, provider };
  const { meanRunning, stations } = simulate(workload, live, places);
  const used = stations.find(({ name }) => name === 'provider')?.utilisation ?? 0;
  const name = `${workload.name}, ${live} live, ${createsPerSec} creates/s`;
  figures.push(
    { name: `${name}: with a sandbox`, value: meanRunning, unit: 'live' },
    { name: `${name}: quota in use`, value: 100 * used, unit: '%' },
    { name: `${name}: needed`, value: (1_000 * live) / lifeMs(workload), unit: 'creates/s' },
  );
}

function busy({ stations }: FleetResult): string {
  return stations
    .filter(({ name }) => name !== 'engine')
    .map(({ name, utilisation }) => `${name} ${(100 * utilisation).toFixed(0)} %`)
    .join(', ');
}

/** What the model says of a server that was measured as a whole: lives per second of the null backend, from the processor time of one. */
function compare(): void {
  const nothing = always(0);
  const costs = { ...costsOf(measured, { eventsPerCall: 0 }), hostMs: 0, turnHostMs: 0 };
  const result = simulateFleet(
    {
      ...{ hosts: 1, coresPerHost: 1, slotsPerHost: 64, engineCalls: 1_000, provider: null },
      costs: { ...costs, queueMs: 0, queueTripMs: 0, workerThreadMs: 0 },
      ...{ turns: () => 1, modelCall: nothing, command: nothing, verify: nothing },
      ...{ demand: { live: 32 }, random: seededRandom(1) },
    },
    { fillMs: 1_000, measureMs: 20_000 },
  );
  const ratio = result.rolloutsPerMin / 60 / measured.figures.livesPerSec.value;
  figures.push({ name: 'lives per second, simulated over measured', value: ratio, unit: '×' });
  goals.push({
    ...{ name: 'lives per second: simulation off by', measured: 100 * Math.abs(ratio - 1) },
    ...{ limit: 25, direction: 'at most', unit: '%' },
  });
}

console.log(`figures: ${measured.machine.cores} cores, ${measured.machine.conditions}`);
compare();
for (const workload of workloads) {
  for (const live of demands) tell(workload, live);
  for (const live of demands) if (live <= 10_000) tellProvider(workload, live, 5);
}
report('simulation', { figures, goals });
