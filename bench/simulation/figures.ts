/** Service times as the other benches measured them: kept with the command that measures them again, or taken from a fresh report of all benches. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { BenchRun } from '../all/run-bench.ts';
import type { RolloutCosts } from './fleet-model.ts';

export type FigureName =
  | 'life'
  | 'livesPerSec'
  | 'runningMemory'
  | 'oraclePace'
  | 'terminalPace'
  | 'event'
  | 'queuePace'
  | 'queueTrip';

interface MeasuredFigure {
  readonly bench: string;
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly command: string;
}

export interface Measured {
  readonly machine: { readonly cores: number; readonly conditions: string };
  readonly figures: Readonly<Record<FigureName, MeasuredFigure>>;
}

export function keptFigures(): Measured {
  const file = path.join(import.meta.dirname, 'figures.json');
  return JSON.parse(readFileSync(file, 'utf8')) as Measured;
}

/** The same figures out of `report.json` of `npm run bench -- all`; an Error names one that it does not hold. */
export function reportedFigures(kept: Measured, reportFile: string): Measured {
  const report = JSON.parse(readFileSync(reportFile, 'utf8')) as {
    readonly cores: number;
    readonly benches: readonly BenchRun[];
  };
  const valueOf = ({ bench, name }: MeasuredFigure): number => {
    const document = report.benches.find((run) => run.bench === bench)?.document;
    const figure = document?.figures.find((found) => found.name === name)?.value;
    const value = figure ?? document?.goals.find((goal) => goal.name === name)?.measured;
    if (typeof value === 'number') return value;
    throw new Error(`${reportFile} has no "${name}" of the bench ${bench}`);
  };
  const figures = Object.entries(kept.figures).map(
    ([key, figure]) => [key, { ...figure, value: valueOf(figure) }] as const,
  );
  return {
    machine: { cores: report.cores, conditions: `as ${reportFile} says` },
    figures: Object.fromEntries(figures) as Measured['figures'],
  };
}

/** Turns of terminus-2 on the task that the bench `native` runs. */
const benchTurns = 4;

/** `eventsPerCall`: what an engine streams for one model call. */
export function costsOf(
  { machine, figures }: Measured,
  { eventsPerCall }: { readonly eventsPerCall: number },
): RolloutCosts {
  const perRollout = (pace: number): number => (machine.cores * 60_000) / pace;
  const hostMs = perRollout(figures.oraclePace.value);
  const lifeMs = figures.life.value / 1_000;
  return {
    frontEndMs: lifeMs,
    queueMs: 1_000 / figures.queuePace.value,
    queueTripMs: figures.queueTrip.value,
    workerThreadMs: lifeMs,
    callThreadMs: (eventsPerCall * figures.event.value) / 1_000,
    hostMs,
    turnHostMs: Math.max(0, perRollout(figures.terminalPace.value) - hostMs) / benchTurns,
  };
}
