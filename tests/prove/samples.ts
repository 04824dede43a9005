/**
 * Must show: the samples of rollouts are what the engine was given and sampled, in every dialect. For every call the prompt of its sample is the logged input ids and the
 * trained span the logged output ids, log-probabilities have the same 64 bits, one sample trains it, the audit passes from the file alone, and a flipped id breaks it.
 */
import { loadVocabulary } from '../../src/engines/server/vocabulary/load-vocabulary.ts';
import { runGatewayCorpus, type GatewayCorpusReport } from '../gateway/capture/exact-corpus.ts';
import { reEncodingCapture } from '../gateway/capture/re-encoding-capture.ts';

const rollouts = Number(process.env['ROLLOUTS'] ?? '2000');
const size = {
  rollouts,
  mostTurns: Number(process.env['MOST_TURNS'] ?? '30'),
  seed: Number(process.env['SEED'] ?? '21'),
  concurrency: Number(process.env['CONCURRENCY'] ?? '12'),
  readsSamples: true,
  onRollout: (ended: number): void => {
    if (ended % 200 === 0) console.log(`  ${ended} rollouts`);
  },
};
const mostShown = 20;

function callsOf({ calls }: GatewayCorpusReport): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}

function show(title: string, report: GatewayCorpusReport): void {
  const dialects = Object.entries(report.calls).map(([name, count]) => `${name} ${count}`);
  console.log(
    `${title}: ${report.rollouts} rollouts, ${callsOf(report)} calls (${dialects.join(', ')}), ${report.tokens} sampled tokens, ${report.nonCanonical} replies not canonical`,
  );
}

function check(isGood: boolean, what: string): void {
  console.log(`  ${isGood ? 'ok' : 'FAILED'}: ${what}`);
  if (!isGood) process.exitCode = 1;
}

const report = await runGatewayCorpus(size);
show('as it is', report);
for (const problem of report.problems.slice(0, mostShown)) console.log(`  PROBLEM ${problem}`);
const calls = callsOf(report);
check(report.problems.length === 0, `${report.problems.length} problems: every call is in samples as the engine has it, trained once, audited, and a flipped id is found`); // prettier-ignore
check(report.nonCanonical * 10 >= calls, 'at least 10 % of the replies are not canonical');
check(Object.values(report.calls).every((count) => count > 0.3 * calls), 'a third of the calls in each dialect'); // prettier-ignore

const vocabulary = await loadVocabulary(null);
const control = await runGatewayCorpus({
  ...size,
  rollouts: Math.ceil(rollouts / 20),
  spoil: (capture) => reEncodingCapture(capture, vocabulary),
});
show('control, decoding and encoding again', control);
check(control.differing > 0 && control.differing === control.nonCanonical, `${control.differing} calls differ: exactly those that are not canonical`); // prettier-ignore
