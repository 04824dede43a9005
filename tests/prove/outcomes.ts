/** Must show: every injected fault is said as specified, on our API and on the wire; a number is a reward only where nothing failed. */
import { judgeOutcome } from '../chaos/outcomes/judge-outcome.ts';
import { crowdedRows, localRows } from '../chaos/outcomes/local-rows.ts';
import { nativeRows } from '../chaos/outcomes/native-rows.ts';
import { realRows } from '../chaos/outcomes/real-rows.ts';
import { runOutcomes } from '../chaos/outcomes/run-outcomes.ts';
import { tamperedOutcomes } from '../chaos/outcomes/tampered-outcomes.ts';

const only = process.env['ROW'];
const rows = [...nativeRows, ...localRows, ...crowdedRows, ...realRows].filter(
  ({ name }) => only === undefined || name.includes(only),
);
const reports = await runOutcomes({
  rows,
  concurrency: 4,
  onReport: ({ row, evidence, problems }) => {
    const { stage, cause, trainable, retryable } = evidence.api;
    const told = evidence.callbacks.map(({ text }) => text).join('\n      ');
    console.log(`${row.name}: ${JSON.stringify([stage, cause, trainable, retryable])}`);
    if (problems.length > 0) console.log(`    ${problems.join('\n    ')}\n      ${told}`);
  },
});
const control = reports.find(({ row }) => row.name === 'agent-late-after-solving');
const missed =
  control === undefined
    ? []
    : tamperedOutcomes(control.evidence).filter(([what, evidence]) => {
        const isFound = judgeOutcome(control.row, evidence).length > 0;
        console.log(`control, ${what}: ${isFound ? 'found' : 'NOT FOUND'}`);
        return !isFound;
      });
const failed = reports.filter(({ problems }) => problems.length > 0);
console.log(`${reports.length} rows, ${failed.length} not as specified`);
if (failed.length > 0 || missed.length > 0 || reports.length !== rows.length) process.exitCode = 1;
