/**
 * Must show: every case has a fixture; answers are the same wherever their streams are cut and whichever form they have; faults in requests and in upstream
 * streams end in the dialect's own words; who listens for event names hears everything; the vendors' packages read it all.
 */
import { countFixtures } from '../gateway/proof/counted-fixtures.ts';
import { checkForms } from '../gateway/proof/equal-forms.ts';
import { fuzzRequests } from '../gateway/proof/fuzzed-requests.ts';
import { fuzzStreams } from '../gateway/proof/fuzzed-streams.ts';
import { seeByName } from '../gateway/proof/named-events.ts';
import { playFixtures } from '../integration/python-fixtures.ts';
import { ModelClients } from '../support/model-clients.ts';
import { checkChunkings } from '../gateway/items/chunkings.ts';

const seed = Number(process.env['SEED'] ?? '1');
const sizes = {
  chunkings: Number(process.env['CHUNKINGS'] ?? '10000'),
  requests: Number(process.env['REQUESTS'] ?? '10000'),
  streams: Number(process.env['STREAMS'] ?? '10000'),
  forms: Number(process.env['FORMS'] ?? '10000'),
};
const fewestFixtures = 200;

function report(isRight: boolean, what: string, problems: readonly string[] = []): void {
  console.log(`${isRight ? 'held' : 'BROKEN'}: ${what}`);
  for (const problem of problems.slice(0, 10)) console.log(`    PROBLEM ${problem}`);
  if (problems.length > 10) console.log(`    and ${problems.length - 10} more`);
  if (!isRight) process.exitCode = 1;
}

/** A line for each tenth. */
function progress(of: number): (done: number) => void {
  const step = Math.max(1, Math.ceil(of / 10));
  return (done) => {
    if (done % step === 0 || done === of) console.log(`  ${done} of ${of}`);
  };
}

console.log(`seed ${seed}`);
const { total, byFolder, cases, missing } = countFixtures();
const folders = Object.entries(byFolder).map(([folder, count]) => `${folder} ${count}`);
report(total >= fewestFixtures, `${total} fixtures (${folders.join(', ')})`);
const without = missing.length === 0 ? '' : `; without one: ${missing.join(', ')}`;
report(
  missing.length === 0,
  `${cases - missing.length} of ${cases} cases have a fixture${without}`,
);

const problemOf = (error: unknown): string =>
  error instanceof Error ? `${error.message}: ${String(error.cause)}` : String(error);

console.log(`${sizes.chunkings} random chunkings`);
const chunked = progress(sizes.chunkings);
let chunkingProblem: string[] = [];
const block = Math.max(1, Math.ceil(sizes.chunkings / 10));
for (let done = 0; done < sizes.chunkings && chunkingProblem.length === 0;) {
  const count = Math.min(block, sizes.chunkings - done);
  await checkChunkings(count, seed + done).catch((error: unknown) => {
    chunkingProblem = [problemOf(error)];
  });
  done += count;
  chunked(done);
}
report(chunkingProblem.length === 0, 'the same items wherever a stream is cut', chunkingProblem);

console.log(`${sizes.forms} answers in both forms and dialects`);
let formProblem: string[] = [];
try {
  checkForms(sizes.forms, seed);
} catch (error) {
  formProblem = [problemOf(error)];
}
report(
  formProblem.length === 0,
  'streamed and final objects are equal in ids, order and content',
  formProblem,
);

console.log(`${sizes.requests} requests with faults, over HTTP`);
const requests = await fuzzRequests(sizes.requests, seed, progress(sizes.requests));
report(
  requests.problems.length === 0 && requests.answered > 0 && requests.refused > 0,
  `${requests.answered} answered, ${requests.refused} refused in their dialect; no crash, no 500, no text lost`,
  requests.problems,
);

console.log(`${sizes.streams} upstream streams with faults, over HTTP`);
const streams = await fuzzStreams(sizes.streams, seed, progress(sizes.streams));
const endings = Object.entries(streams.endings).map(([kind, count]) => `${count} ${kind}`);
report(
  streams.problems.length === 0 && (streams.endings['streamed'] ?? 0) > 0,
  `${endings.join(', ')}; each with exactly one end, no text lost`,
  streams.problems,
);

for (const dialect of ['messages', 'responses'] as const) {
  const { sent, seen, seenOfDataOnly } = await seeByName(dialect);
  report(sent > 0 && seen === sent, `${dialect}: ${seen} of ${sent} events are heard by name`);
  report(seenOfDataOnly < sent, `control, ${dialect} as data only: ${seenOfDataOnly} are heard`);
}

await using clients = await ModelClients.start();
for (const dialect of ['messages', 'responses'] as const)
  try {
    const { played, read } = await playFixtures(dialect, clients);
    report(
      read > 0,
      `the Python package reads ${played} streams and whole answers of ${dialect}, ${played - read} of them failures`,
    );
  } catch (error) {
    report(false, `the Python package and ${dialect}`, [problemOf(error)]);
  }

console.log(process.exitCode === 1 ? 'FAILED' : 'the dialects held');
