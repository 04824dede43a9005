/** Must show: a failure in each phase says the same in callbacks, log and archive; without a sample the sidecar is alone; a reward nobody asked for is kept. */
import { diagnosticsRows } from '../chaos/diagnostics/diagnostics-rows.ts';
import { judgeDiagnostics } from '../chaos/diagnostics/judge-diagnostics.ts';
import { runDiagnostics } from '../chaos/diagnostics/run-diagnostics.ts';
import { tamperedDiagnostics } from '../chaos/diagnostics/tampered-diagnostics.ts';

const reports = await runDiagnostics(diagnosticsRows);
for (const { row, evidence, problems } of reports) {
  const {
    phase,
    harbor_exception_type: type,
    timings_sec: timings,
  } = {
    ...(evidence.sidecar as Readonly<Record<string, unknown>> | null),
  };
  console.log(`${row.name}: ${JSON.stringify([phase, type, timings])}`);
  for (const problem of problems) console.log(`    ${problem}`);
}
const missed = tamperedDiagnostics(reports).filter(([what, row, evidence]) => {
  const isFound = judgeDiagnostics(row, evidence).length > 0;
  console.log(`control, ${what}: ${isFound ? 'found' : 'NOT FOUND'}`);
  return !isFound;
});
const failed = reports.filter(({ problems }) => problems.length > 0);
const phases = new Set(reports.map(({ row }) => row.phase));
console.log(`${reports.length} rows in ${phases.size} phases, ${failed.length} not as specified`);
if (failed.length > 0 || missed.length > 0 || phases.size < 8) process.exitCode = 1;
