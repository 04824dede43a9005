/**
 * Must show, of the shipped plugin `slipway_miles` and of a client that behaves on the wire as Miles' Harbor plugin does: it completes 50 trials in real sandboxes, and
 * its abort ends exactly its own instance's trials: within 2 s no model call, process or sandbox of theirs is there, each `/run` answers `Flushed`, the other instance's
 * trials end with their reward. `COMPLETED`, `LIVE`, `CONCURRENCY` and `PATIENCE_MS` (for a machine that does other things too) change the size; `PLUGIN`
 * (`slipway_miles` or `stock`) chooses one.
 */
import { milesTrials } from '../chaos/miles-trials.ts';
import { whyNoTrials } from '../chaos/trial-servers.ts';
import type { PluginKind } from '../support/miles-plugin.ts';

const goalMs = 2_000;
const number = (name: string, usual: number): number => Number(process.env[name] ?? usual);
const [completed, live] = [number('COMPLETED', 50), number('LIVE', 8)];

const reason = whyNoTrials('native');
const kinds = ['slipway_miles', 'stock'] as const;
const wanted = kinds.filter((kind) =>
  [kind, undefined].includes(process.env['PLUGIN'] as typeof kind),
);
if (reason === null && wanted.length > 0) for (const plugin of wanted) await prove(plugin);
else {
  console.log(`trials cannot be shown here: ${reason ?? 'PLUGIN names none'}`);
  process.exitCode = 1;
}

async function prove(plugin: PluginKind): Promise<void> {
  console.log(`\nthe plugin ${plugin}`);
  const report = await milesTrials({
    ...{ completed, live, latencyMs: 700, plugin },
    concurrency: number('CONCURRENCY', 16),
    goneWithinMs: Math.max(goalMs, number('PATIENCE_MS', goalMs)),
  });
  const statuses = (answers: typeof report.completed): string =>
    [...new Set(answers.map(({ result }) => result?.exit_status ?? 'nothing'))].join(', ');
  const good = report.completed.filter(
    ({ result }) => result?.exit_status === 'Submitted' && result.reward === 1,
  );
  console.log(
    `completed: ${good.length} of ${completed} with reward 1 (${statuses(report.completed)})`,
  );
  console.log(
    `flush: ${JSON.stringify(report.flushAnswer)} after ${Math.round(report.flushMs)} ms`,
  );
  console.log(`flushed: ${report.flushed.length} answers (${statuses(report.flushed)})`);
  console.log(`the other instance: ${report.others.length} answers (${statuses(report.others)})`);
  console.log(
    `gone: ${report.goneMs === null ? 'no' : `after ${Math.round(report.goneMs)} ms`}, goal ${goalMs} ms; control: the same look found ${report.before} things before`,
  );
  for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
  const areFlushed = report.flushed.every(
    ({ status, result }) => status === 200 && result?.exit_status === 'Flushed',
  );
  const isGood =
    good.length === completed &&
    areFlushed &&
    report.others.every(({ result }) => result?.reward === 1) &&
    report.before >= live &&
    report.goneMs !== null &&
    report.problems.length === 0;
  console.log(isGood ? 'met' : 'MISSED');
  if (!isGood) process.exitCode = 1;
}
