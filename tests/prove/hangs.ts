/** Must show: twelve kinds of hangs, brought about for real, are each named with owner and what is waited for within 5 s, by the API and `slipway doctor`. */
import { hangKinds } from '../../src/wire/rollout/diagnosis.ts';
import { injectHangs } from '../chaos/injected-hangs.ts';

const goalMs = 5_000;
const { named, problems } = await injectHangs({
  asksProgram: () => true,
  onNamed: ({ kind, namedMs, finding }) => {
    const when = namedMs === null ? 'NEVER' : `after ${(namedMs / 1000).toFixed(1)} s`;
    console.log(`${kind}: named ${when}`);
    if (finding === null) return;
    console.log(`  owner ${String(finding.owner)}, waiting on ${String(finding.waiting_on)}`);
    for (const what of finding.evidence) console.log(`  seen: ${what}`);
  },
});
const late = named.filter(({ namedMs }) => namedMs === null || namedMs > goalMs);
const found = new Set(named.filter(({ namedMs }) => namedMs !== null).map(({ kind }) => kind));
const missing = hangKinds.filter((kind) => !found.has(kind));
for (const problem of problems) console.log(`  PROBLEM ${problem}`);
for (const { kind } of late) console.log(`  PROBLEM ${kind} was not named within ${goalMs} ms`);
for (const kind of missing) console.log(`  PROBLEM ${kind} was not named at all`);
const isGood = problems.length === 0 && late.length === 0 && missing.length === 0;
console.log(
  isGood
    ? `${found.size} kinds of hangs: each was named, with its owner, within ${goalMs} ms`
    : 'FAILED',
);
if (!isGood) process.exitCode = 1;
