/** Must show: what the gateway captures is what the engine sampled, in every dialect; a capture that encodes text again fails on the same corpus. */
import { loadVocabulary } from '../../src/engines/server/vocabulary/load-vocabulary.ts';
import { runGatewayCorpus, type GatewayCorpusReport } from '../gateway/capture/exact-corpus.ts';
import { qwenDir } from '../gateway/tokens/tokens-fixture.ts';
import { reEncodingCapture } from '../gateway/capture/re-encoding-capture.ts';

/** `MODE=tokens`: the gateway makes the ids of prompts. */
const mode = process.env['MODE'] === 'tokens' ? 'tokens' : 'relay';
const rollouts = Number(process.env['ROLLOUTS'] ?? '2000');
const leastTokens = 1_000_000;
const size = {
  ...({ rollouts, mode } as const),
  ...(mode === 'tokens' && { tokenizer: qwenDir }),
  mostTurns: 30,
  seed: Number(process.env['SEED'] ?? '20'),
  concurrency: Number(process.env['CONCURRENCY'] ?? '12'),
  onRollout: (ended: number): void => {
    if (ended % 200 === 0) console.log(`  ${ended} rollouts`);
  },
};
const mostShown = 20;

function callsOf({ calls }: GatewayCorpusReport): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}

function show(title: string, report: GatewayCorpusReport, startedMs: number): void {
  const calls = callsOf(report);
  const percent = (part: number): string => `${((part / calls) * 100).toFixed(1)} %`;
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
  const dialects = Object.entries(report.calls).map(([name, count]) => `${name} ${count}`);
  console.log(
    `${title}: ${report.rollouts} rollouts, ${calls} calls (${dialects.join(', ')}), ${percent(report.streamed)} streamed, ${report.tokens} sampled tokens, ${report.nonCanonical} replies (${percent(report.nonCanonical)}) not canonical, ${minutes} min`,
  );
}

function check(isGood: boolean, what: string): void {
  console.log(`  ${isGood ? 'ok' : 'FAILED'}: ${what}`);
  if (!isGood) process.exitCode = 1;
}

const startedMs = performance.now();
const report = await runGatewayCorpus(size);
show('as it is', report, startedMs);
for (const problem of report.problems.slice(0, mostShown)) console.log(`  PROBLEM ${problem}`);
const calls = callsOf(report);
check(report.problems.length === 0, `${report.problems.length} problems: every call is captured once, with the engine's ids and the 64 bits of its log-probabilities, and no client sees them`); // prettier-ignore
check(report.nonCanonical * 10 >= calls, 'at least 10 % of the replies are not canonical');
check(rollouts < 2_000 || report.tokens >= leastTokens, `at least ${leastTokens} sampled tokens (at full size)`); // prettier-ignore
check(report.streamed > 0.45 * calls && report.streamed < 0.55 * calls, 'half of the calls are streamed'); // prettier-ignore
check(Object.values(report.calls).every((count) => count > 0.3 * calls), 'a third of the calls in each dialect'); // prettier-ignore

if (mode === 'tokens')
  check(report.appended === calls - rollouts, `${report.appended} prompts begin with all ids of the turn before: every one but the first of a rollout`); // prettier-ignore

const controlMs = performance.now();
const vocabulary = await loadVocabulary(mode === 'tokens' ? qwenDir : null);
const control = await runGatewayCorpus({
  ...size,
  rollouts: Math.ceil(rollouts / 5),
  spoil: (capture) => reEncodingCapture(capture, vocabulary),
});
show('control, decoding and encoding again', control, controlMs);
check(control.differing > 0 && control.differing === control.nonCanonical, `${control.differing} calls differ: exactly those that are not canonical`); // prettier-ignore

if (mode === 'tokens') {
  const againMs = performance.now();
  const some = { ...size, rollouts: Math.ceil(rollouts / 10) };
  const again = await runGatewayCorpus({ ...some, matches: () => false });
  show('control, encoding the history again in every turn', again, againMs);
  const turns = callsOf(again) - some.rollouts;
  check(again.appended < turns, `${turns - again.appended} of ${turns} turns do not go on from the ids of the one before`); // prettier-ignore
}
