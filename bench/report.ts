/** What every benchmark prints: each goal with what was measured and whether it was met, as a table and as JSON; exit 1 on a miss. */
import { isShort } from './size.ts';

export interface Goal {
  readonly name: string;
  readonly measured: number;
  readonly limit: number;
  readonly direction: 'at most' | 'at least';
  readonly unit: string;
}

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

/** The last line that a benchmark prints. */
export interface BenchDocument {
  readonly bench: string;
  readonly size: 'full' | 'short';
  readonly figures: readonly Figure[];
  readonly goals: readonly (Goal & { readonly isMet: boolean })[];
  /** It was told to end before it had measured all. */
  readonly isPartial?: true;
}

export function isMet(goal: Goal): boolean {
  if (!Number.isFinite(goal.measured)) return false;
  return goal.direction === 'at most' ? goal.measured <= goal.limit : goal.measured >= goal.limit;
}

export interface Results {
  readonly figures: readonly Figure[];
  readonly goals: readonly Goal[];
}

/** From here on an end by SIGTERM is the end of its time: what there is by then is reported, named as such, and `end` puts away what lives on without the process. */
export function reportWhenLate(
  name: string,
  soFar: () => Results,
  end: () => Promise<unknown> = () => Promise.resolve(),
): void {
  process.once('SIGTERM', () => {
    print(name, soFar(), true);
    // What is being measured breaks off now, wherever it is.
    for (const event of ['uncaughtException', 'unhandledRejection'] as const)
      process.on(event, () => undefined);
    void end()
      .catch((error: unknown) => console.error(error))
      .then(() => process.exit(1));
  });
}

/** Prints and sets the exit code. */
export function report(name: string, results: Results): void {
  print(name, results, false);
}

function print(name: string, results: Results, isPartial: boolean): void {
  const width = Math.max(
    0,
    ...[...results.figures, ...results.goals].map((row) => row.name.length),
  );
  const size = isShort ? ' (short size: its numbers scatter)' : '';
  console.log(`\n${name}${size}${isPartial ? ', out of time: not all of it was measured' : ''}`);
  for (const figure of results.figures)
    console.log(`  ${figure.name.padEnd(width)}  ${format(figure.value)} ${figure.unit}`);
  console.log('\n  goals');
  for (const goal of results.goals)
    console.log(
      `  ${goal.name.padEnd(width)}  goal ${goal.direction} ${format(goal.limit)} ${goal.unit}, measured ${format(goal.measured)} ${goal.unit}: ${isMet(goal) ? 'met' : 'MISSED'}`,
    );
  const goals = results.goals.map((goal) => ({ ...goal, isMet: isMet(goal) }));
  const document: BenchDocument = {
    ...{ bench: name, size: isShort ? 'short' : 'full', figures: results.figures, goals },
    ...(isPartial && { isPartial }),
  };
  console.log(JSON.stringify(document));
  if (goals.some((goal) => !goal.isMet)) process.exitCode = 1;
}

function format(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}
