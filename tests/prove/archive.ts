/** Must show: a trajectory in the archive differs from the agent's only in the listed fields, and what cannot be archived keeps its trial. */
import { archiveDocuments, judgeDocument } from '../chaos/archive/archived-documents.ts';
import { brokenArchives } from '../chaos/archive/broken-archives.ts';
import { killArchiving } from '../chaos/archive/killed-archive.ts';
import { differences } from '../chaos/archive/compare-documents.ts';
import { runTestFiles } from './run-test-files.ts';

const count = Number(process.env['DOCUMENTS'] ?? 3_000);
const seeds = Array.from({ length: count }, (_, index) => index + 1);
const all = await archiveDocuments(seeds);
const places = new Map<string, number>();
for (const { document, kept } of all)
  for (const { at } of differences(document, kept)) {
    const place = at.replace(/\/\d+/g, '/N').replace(/^(\/extra\/osmosis)\/.*/, '$1/…');
    places.set(place, (places.get(place) ?? 0) + 1);
  }
for (const [place, times] of [...places].sort(([a], [b]) => (a < b ? -1 : 1)))
  console.log(`differs at ${place}: ${times} times`);
const wrong = all.filter(({ problems }) => problems.length > 0);
for (const { seed, problems } of wrong.slice(0, 10))
  console.log(`seed ${seed}: ${problems.join('\n    ')}`);
let missed = 0;
for (const [what, change] of brokenArchives) {
  const found = all.some(
    ({ document, kept, expected }) => judgeDocument(document, change(kept), expected).length > 0,
  );
  console.log(`control, ${what}: ${found ? 'found' : 'NOT FOUND'}`);
  if (!found) missed += 1;
}
console.log(`${all.length} documents, ${wrong.length} differ where they may not`);
for (const isReversed of [false, true]) {
  const { ended, archived, lost } = await killArchiving({ kills: 25, seed: 7, isReversed });
  const order = isReversed ? 'control, released before it is archived' : 'archived, then released';
  console.log(
    `killed 25 times, ${order}: ${ended} trials, ${archived} archived, ${lost.length} lost`,
  );
  if (isReversed ? lost.length === 0 : lost.length > 0) missed += 1;
}
if (wrong.length > 0 || missed > 0) process.exitCode = 1;
await runTestFiles('tests/integration/kept-trials.test.ts');
