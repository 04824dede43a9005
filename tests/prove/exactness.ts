/** Must show: 500 terminus-2 trials keep every token as it was sampled; a client that decodes and encodes again fails on the same corpus. */
import { loadVocabulary } from '../../src/engines/server/vocabulary/load-vocabulary.ts';
import { runCorpus, type CorpusReport } from '../chaos/exact-corpus.ts';
import { reEncoding } from '../chaos/re-encoding-client.ts';

const trials = Number(process.env['TRIALS'] ?? '500');
const size = {
  items: Math.ceil(trials * 0.94),
  singleTurnItems: Math.floor(trials * 0.06),
  seed: Number(process.env['SEED'] ?? '20'),
  concurrency: Number(process.env['CONCURRENCY'] ?? '6'),
};
const mostShown = 20;

function show(title: string, report: CorpusReport, startedMs: number): void {
  const share = ((report.nonCanonical / report.calls) * 100).toFixed(1);
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
  console.log(
    `${title}: ${report.trials} trials, ${report.calls} calls, ${report.tokens} sampled tokens, ${report.nonCanonical} replies (${share} %) not canonical, ${minutes} min`,
  );
}

const startedMs = performance.now();
const onTrial = (ended: number): void => {
  if (ended % 50 === 0) console.log(`  ${ended} trials`);
};
const report = await runCorpus({ ...size, onTrial });
show('as it is', report, startedMs);
for (const problem of report.problems.slice(0, mostShown)) console.log(`  PROBLEM ${problem}`);
if (report.nonCanonical * 10 < report.calls) {
  console.log('  PROBLEM less than 10 % of the replies are not canonical');
  process.exitCode = 1;
}
console.log(
  report.problems.length === 0
    ? '  every call: the same ids, the same 64 bits of every log-probability; none lost, none twice'
    : `  FAILED: ${report.problems.length} problems`,
);
if (report.problems.length > 0) process.exitCode = 1;

const controlMs = performance.now();
const vocabulary = await loadVocabulary(null);
const control = await runCorpus({
  ...size,
  onTrial,
  spoil: (open) => reEncoding(open, vocabulary),
});
show('control, decoding and encoding again', control, controlMs);
const isFound = control.differing > 0 && control.differing === control.nonCanonical;
console.log(
  `  ${control.differing} calls differ: ${isFound ? 'exactly those that are not canonical' : 'FAILED: expected those that are not canonical'}`,
);
if (!isFound) process.exitCode = 1;
