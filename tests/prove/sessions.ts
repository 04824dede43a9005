/**
 * Must show: the session API of Miles, behaviour by behaviour. Each line names one that clients rely on, by the area it is of (S1 and S2 the two versions, C the
 * container, M the matchers, T turns put together), and holds when all tests that show it pass: requests as they are sent, answers byte for byte.
 */
import { once } from 'node:events';
import path from 'node:path';
import { run } from 'node:test';

type Row = readonly [area: string, behaviour: string, ...titles: readonly string[]];

/** Titles are the beginnings of those of the tests. */
const rows: readonly Row[] = [
  [
    'S1',
    'ids are 32 hexadecimal digits, a new session has no records, 204 and 404',
    'make, show and delete sessions',
  ],
  ['S1', 'a body that cannot be read is a 400, and the engine hears nothing', 'refuse '],
  [
    'S1',
    'an answer of the engine that cannot be used is a 502, and nothing is recorded',
    'answer 502 ',
  ],
  [
    'S1',
    'refusals of the engine go through unrecorded, and the next first request may differ',
    'pass refusals of the engine on',
  ],
  [
    'S1',
    'the engine gets ids, forced members and a routing key',
    'send a turn to the engine with ids',
  ],
  [
    'S1',
    'one server and one date header; replay payloads only in the record',
    'answer with one server and one date',
  ],
  [
    'S1',
    'a stream is one chunk equal to the answer, then DONE; errors stay JSON',
    'stream a turn as one chunk',
  ],
  ['S1', 'calls that streaming clients rebuilt match what is stored', 'take an index in a call'],
  ['S1', 'every other path and method goes to the engine', 'reach through to the engine'],
  ['S1', 'only the new text is encoded', 'goes on from the ids of the turn before'],
  ['S1', 'the last turn may be asked again, and two records stay two', 'takes the last turn again'],
  ['S1', 'a first turn that is asked again empties the session', 'is empty again'],
  ['S1', 'a full history once more is a turn behind it', 'takes its whole history once more'],
  ['S1', 'what the client says for the assistant is no checkpoint', 'counts what the client says'],
  [
    'S1',
    'more than one turn back is a 400 and changes nothing',
    'does not go back by more than one turn',
  ],
  [
    'S1',
    'a role that may not be appended is a 400 that leaves the rollback',
    'refuses a role that may not stand',
  ],
  [
    'S1',
    'four equal continuations are four answers and one record',
    'answers four equal continuations',
  ],
  ['S1', 'sessions do not wait for each other', 'does not wait for other sessions'],
  [
    'S1',
    'paused in place, replay is asked for from 0, then from one before the end, also after a turn taken back',
    'paused in place asks for new rows only',
    'paused in another way asks for all rows',
  ],
  ['S1', 'the OpenAI SDK accumulates a streamed turn', 'are accumulated by the OpenAI SDK'],
  [
    'S1',
    'a call outlives the deletion of its session unrecorded',
    'answers a call whose session was deleted',
  ],
  [
    'S1',
    'what differs from the conversation is told by kind, family by family',
    "has an assistant's own spelling",
    'lacks the end of a turn',
  ],
  [
    'S2',
    'a deep divergence is a branch: four nodes, two leaves, both samples',
    'keeps a branch that goes off deep down',
  ],
  ['S2', 'another opening is a second root', 'begins anew with another opening'],
  ['S2', 'a truncated turn is not extended: 409', 'does not go on from a turn that was cut off'],
  ['S2', 'the place of a request is found by whole paths, the latest of equals', 'finds where '],
  ['S2', 'the view stands where the last request stood', 'shows the place of a request'],
  ['S2', 'requests side by side are siblings', 'makes siblings'],
  ['S2', 'no more nodes than the cap', 'takes no more turns than it may hold'],
  [
    'S2',
    'retries are trimmed, abandoned branches stay, a shared prefix is trained once',
    'keeps a branch that was left',
  ],
  [
    'S2',
    'a line of retries gives the payload of the first version, bit for bit',
    'gives of a line that was asked again',
  ],
  [
    'S2',
    'the agent adds metadata and no server key; its reward reaches all',
    'puts what the agent says',
    'gives every sample the reward',
  ],
  ['S2', 'a picker that breaks its contract is a 422 in plain text', 'answers 422 in plain text'],
  ['M', 'strict, loose_tool_call and role_content_only accept nested sets', 'take '],
  [
    'S2',
    'of random forests every kept completion is trained in exactly one kept leaf',
    'trains every completion on a kept path',
  ],
  [
    'M',
    'matchers are found by name, and a wrong one names the aliases',
    'are found by their names',
  ],
  ['M', 'a matcher that raises or gives no boolean is a 500', 'answers 500 where its matcher'],
  [
    'T',
    'turns become one sample: mask, zeros between, log-probabilities',
    'gives its turns as one sample',
  ],
  [
    'T',
    'what the template replaced is left out within the allowance',
    'leave out what the template replaced',
    'leaves out ends of outputs',
  ],
  ['T', 'what cannot be put together is a 422', 'are refused where '],
  [
    'T',
    'a length cuts a turn, drops later ones, or leaves nothing',
    'is truncated where a limit says so',
    'says why it has no samples',
  ],
  [
    'T',
    'rows of replay are put together as the whole would be; what does not fit is an error',
    'are put together of the rows that each turn adds',
    'may be empty where there is no row to say',
    'are an error where they ',
    'of the indexer are an error',
    'refuses samples whose payloads are not about',
  ],
  [
    'T',
    'a turn without the replay that the ones before it have ends the sample',
    'end a sample before a turn that lacks',
  ],
  ['T', 'a turn that ended early ends the sample', 'has a sample that ends with the first turn'],
  [
    'C',
    'the container is that of the safetensors library, bit for bit',
    'the bytes are those of the safetensors library',
    'a strict reader in Python reads every field',
    'keep the sign of a zero',
  ],
  ['C', 'a strict reader refuses every malformed one', 'the strict reader refuses '],
  [
    'C',
    'values that would change are an error; no samples have a reason',
    'what would change on the way',
    'no samples have a reason',
  ],
];

const dir = path.join(import.meta.dirname, '../sessions');
const files = [
  ...['session-routes', 'linear-sessions', 'tree-sessions', 'message-matcher', 'merge-turns'],
  ...['mismatch', 'random-forest', 'replay', 'sample-hooks'],
].map((name) => path.join(dir, 'miles', `${name}.test.ts`));
const results: { readonly name: string; readonly isPassed: boolean }[] = [];
const stream = run({
  files: [...files, path.join(dir, 'miles-container.test.ts')],
  concurrency: 1,
});
stream.on('test:pass', ({ name }) => results.push({ name, isPassed: true }));
stream.on('test:fail', ({ name }) => results.push({ name, isPassed: false }));
stream.resume();
await once(stream, 'end');

let broken = 0;
for (const [area, behaviour, ...titles] of rows) {
  const shown = titles.map((title) => results.filter(({ name }) => name.startsWith(title)));
  const isHeld = shown.every((all) => all.length > 0 && all.every(({ isPassed }) => isPassed));
  if (!isHeld) broken += 1;
  console.log(
    `${isHeld ? 'held  ' : 'BROKEN'} ${area.padEnd(2)} ${behaviour} (${shown.flat().length} tests)`,
  );
}
const failed = results.filter(({ isPassed }) => !isPassed);
for (const { name } of failed) console.log(`failed: ${name}`);
console.log(broken === 0 && failed.length === 0 ? `all ${rows.length} held` : `${broken} broken`);
process.exitCode = broken === 0 && failed.length === 0 ? 0 : 1;
