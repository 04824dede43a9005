/**
 * Must show: 32 groups of 8 out of 48 that were started, with a long tail, 5 % of losses and 3 rows that cannot work. The batch is handed over when the 32nd group is
 * complete, the stragglers are gone with receipts, every group is accounted for. Control: without the agent's hook, agents call the engine after the abort.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  problemsOf,
  runOversampling,
  type OversamplingSize,
} from '../collector/oversampling-run.ts';
import { startEngineProcess } from '../support/engine-process.ts';
import { startServeProcess } from '../support/serve-process.ts';

const seed = Number(process.env['SEED'] ?? '3');
const handOverMs = 100;
const goneMs = 2_000;

const size: OversamplingSize = {
  ...{ batchGroups: 32, startGroups: 48, groupSize: 8, badRows: [5, 17, 40], lossShare: 0.05 },
  ...{
    scaleMs: 800,
    alpha: 0.9,
    capMs: 20_000,
    seed,
    hasHook: true,
    drainMs: 25_000,
  },
};

const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-oversampling-'));
const engineLog = path.join(root, 'engine.ndjson');
let isFailed = false;
try {
  await using engine = await startEngineProcess(['--log', engineLog, '--latency', 'constant:30']);
  const flags = ['--backend', 'null', '--max-concurrent', '512', '--max-queue-depth', '2000'];
  await using server = await startServeProcess(flags, { stateDir: root });
  const at = { serverUrl: server.url, engineUrl: engine.url, engineLog };
  const result = await runOversampling(size, at);
  const { report, receipt } = result;
  const problems = [...problemsOf(size, result)];
  if (result.handOverMs > handOverMs) problems.push(`handed over after ${result.handOverMs} ms`);
  if (receipt.durationMs > goneMs) problems.push(`gone after ${receipt.durationMs.toFixed()} ms`);
  const ended = receipt.rollouts.filter(({ how }) => how === 'ended').length;
  const redone = (100 * report.rolloutsRefilled) / report.rolloutsStarted;
  console.log(`groups: ${report.groupsStarted} started, ${report.groupsKept} handed over`);
  console.log(`  dropped: ${JSON.stringify(report.drops)}`);
  for (const { seed: returned, as } of report.returned)
    console.log(`  group ${returned.groupIndex} is kept for the next batch: ${as}`);
  console.log(
    `rollouts: ${report.rolloutsStarted} started, ${report.rolloutsRefilled} made anew (${redone.toFixed(1)} %)`,
  );
  console.log(
    `handed over ${result.handOverMs} ms after the last group that it needed was complete`,
  );
  console.log(
    `stragglers: ${ended} ended and confirmed in ${receipt.durationMs.toFixed()} ms, ${result.callsAfter} calls after`,
  );
  console.log(`length bias: ${JSON.stringify(report.lengthBias)}`);
  for (const problem of problems) console.log(`PROBLEM ${problem}`);
  if (problems.length > 0) isFailed = true;
  const control = await runOversampling({ ...size, seed: seed + 1, hasHook: false }, at);
  console.log(
    `control, without the hook: ${control.callsLate} calls reached the engine a second and more after the abort began` +
      ` (with it: ${result.callsLate}); quiet after ${control.receipt.durationMs.toFixed()} ms`,
  );
  console.log(
    `  groups that were complete when the batch was full, each kept for the next one: ${control.report.returned.map(({ seed: of }) => of.groupIndex).join(' ')}`,
  );
  if (control.callsLate === 0) isFailed = true;
} finally {
  rmSync(root, { recursive: true, force: true });
}
console.log(isFailed ? 'FAILED' : 'the fastest were handed over, the rest is gone');
if (isFailed) process.exitCode = 1;
