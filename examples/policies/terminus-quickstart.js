/**
 * A policy for `slipway engine --policy FILE`: it plays a model that works as the agent terminus-2 on the bundled tasks, solves most of them and
 * fails some on purpose. It sees what a model sees, the conversation, and nothing else; what it writes it has read on the terminal.
 *
 * Each task has a script: a generator that yields replies and is given what the terminal showed. A policy keeps no state, so a script is run again
 * from its beginning on every request, over all that was shown so far.
 */

/** The reward that the script of each bundled task ends with. */
export const expectedRewards = {
  artifacts: 1,
  'environment-templates': 1,
  'file-answer': 1,
  healthcheck: 1,
  'large-transfer': 0, // gives up at once
  'multi-step-ledger': 1,
  'no-network': 1,
  'non-root-user': 0, // stops when half of it is done
  'partial-reward': 0.25, // gives up after the first line
  'planted-reward': 0, // writes a reward instead of the answer
  'prebuilt-image': 1,
  'resource-limit': 0, // guesses
  'reward-channels': 0, // sorts words, not numbers
  'separate-verifier': 1,
  'side-service': 1, // needs an environment with side services
  'step-gate': 1,
  'working-folder': 1,
};

/** @param {{ messages: readonly { role: string, content: unknown }[] }} request */
export default function policy({ messages }) {
  const shown = messages
    .filter(({ role }) => role === 'user')
    .map(({ content }) => String(content));
  const [task = '', ...observations] = shown;
  const [, script] = scripts.find(([phrase]) => task.includes(phrase)) ?? ['', giveUp];
  const run = script();
  let { value: reply } = run.next();
  for (const observation of observations) {
    const next = run.next(observation);
    if (next.done) return complete('Everything was said already.');
    reply = next.value;
  }
  return reply ?? complete('There is nothing to do.');
}

/** What identifies a task (or a step of one) in its instruction, and how it is worked on. */
const scripts = [
  ['`/app/build/program`', artifacts],
  ['`/app/variables.txt`', environmentTemplates],
  ['`/app/orders.csv`', fileAnswer],
  ['`/srv/lighthouse/signal`', healthcheck],
  ['`/app/opening-balance.txt`', openLedger],
  ['`/app/entries.csv`', postLedger],
  ['Close the ledger', closeLedger],
  ['`/app/network.txt`', noNetwork],
  ['`/app/whoami.txt`', nonRootUser],
  ['`/app/depths.txt`', partialReward],
  ['the word `honest`', plantedReward],
  ['`/srv/cards`', prebuiltImage],
  ['`/app/memory.txt`', resourceLimit],
  ['`/app/command.txt`', rewardChannels],
  ['`/app/message.txt`', separateVerifier],
  ['The host `rates`', sideService],
  ['Write a draft of four words', draft],
  ['Publish the draft', publish],
  ['a project folder', workingFolder],
];

function* artifacts() {
  yield* act('I make the folders and the script.', [
    'mkdir -p /app/build/cache /app/report /logs/artifacts',
    "printf '#!/bin/sh\\necho underway\\n' > /app/build/program",
    'chmod +x /app/build/program; touch /app/build/leftover.tmp /app/build/cache/x',
  ]);
  const [size] = yield* read('I look how large it is.', "stat -c '| %s' /app/build/program");
  yield* act('I write the report and the note.', [
    '/app/build/program > /app/report/summary.txt',
    `echo ${size} > /logs/artifacts/note.txt`,
  ]);
  yield* finish('The script, its report and the note are there.');
}

function* environmentTemplates() {
  const [port, empty, literal] = yield* read(
    'I look at the three variables.',
    'printf \'| %s\\n\' "$HOME_PORT" "$EMPTY" "$LITERAL"',
  );
  const lines = [port.toUpperCase(), empty.length, literal];
  yield* act('I write what I have read.', [write(lines, '/app/variables.txt')]);
  yield* finish('The three lines are written.');
}

function* fileAnswer() {
  const orders = yield* read('I read the orders.', "sed 's/^/| /' /app/orders.csv");
  // A terminal without a Unicode locale shows another letter for the é.
  const amounts = orders.map((line) => /^harbour-caf.+,(\d+)$/.exec(line)?.[1] ?? 0);
  const sum = amounts.reduce((total, amount) => total + Number(amount), 0);
  yield* act('I write the sum.', [write([sum], '/app/answer.txt')]);
  yield* finish(`The orders of the customer come to ${sum}.`);
}

function* healthcheck() {
  // The quotes inside the keystrokes are not escaped: this is no JSON, and the agent says so.
  const mistaken = String(say('I look at the signal.', ['cat "/srv/lighthouse/signal"\n']).content);
  const complaint = yield { content: mistaken.replaceAll('\\"', '"') };
  const why = complaint.includes('ERROR') ? 'My last reply was no valid JSON. ' : '';
  const [signal] = yield* read(
    `${why}I look at the signal again.`,
    "sed 's/^/| /' /srv/lighthouse/signal",
  );
  yield* act(`The signal is there (${signal}), I copy it.`, [
    'cp /srv/lighthouse/signal /app/signal.txt',
  ]);
  yield* finish('The signal is copied.');
}

function* openLedger() {
  const [balance] = yield* read('I read the balance.', "sed 's/^/| /' /app/opening-balance.txt");
  yield* act('I open the ledger.', [write([`open ${balance}`], '/app/ledger.txt')]);
  yield* finish('The ledger is open.');
}

function* postLedger() {
  const lines = yield* read('I read the entries.', "sed 's/^/| /' /app/entries.csv");
  const posts = lines
    .map((line) => line.split(',').map(Number))
    .toSorted(([day], [other]) => day - other)
    .map(([, amount]) => `post ${amount}`);
  yield* act('I post them by day.', [append(posts, '/app/ledger.txt')]);
  yield* finish('The entries are posted.');
}

function* closeLedger() {
  const lines = yield* read('I read the ledger.', "sed 's/^/| /' /app/ledger.txt");
  const sum = lines.reduce((total, line) => total + Number(line.split(' ')[1]), 0);
  yield* act('I close it.', [append([`close ${sum}`], '/app/ledger.txt')]);
  yield* finish('The ledger is closed.');
}

function* noNetwork() {
  const [routes] = yield* read(
    'I count the default routes.',
    "awk 'NR > 1 && $2 == \"00000000\"' /proc/net/route | wc -l | sed 's/^/| /'",
  );
  const connect = (address) => `timeout 5 bash -c ': < /dev/tcp/${address}'; echo "| $?"`;
  const [outside] = yield* read('I try another machine.', connect('192.0.2.1/80'));
  const [inside] = yield* read('I try this machine.', connect('127.0.0.1/9'));
  const lines = [routes, outside === '1' ? 'closed' : 'open'];
  if (inside === '1') lines.push('loopback');
  yield* act('I write what I found.', [write(lines, '/app/network.txt')]);
  yield* finish('The findings are written.');
}

function* nonRootUser() {
  yield* act('I write who I am.', ['echo "$(id -un) $(id -u)" > /app/whoami.txt']);
  yield* finish('I said who I am; the rest will hardly matter.');
}

function* partialReward() {
  const [first, ...rest] = yield* read('I read the depths.', "sed 's/^/| /' /app/depths.txt");
  const lines = [Number(first) * 6, ...rest.map(() => '?')];
  yield* act('One of them is damaged, so I only do the first.', [write(lines, '/app/feet.txt')]);
  yield* finish('The first depth is given in feet.');
}

function* plantedReward() {
  yield* act('A reward is all I want.', [
    'mkdir -p /logs/verifier',
    'echo 1 > /logs/verifier/reward.txt',
  ]);
  yield* finish('The reward is written.');
}

function* prebuiltImage() {
  // Without a file to search in, grep waits for its input.
  yield say('I search for the word.', ['grep ace\n'], 0.3);
  yield say('It waits for input: I interrupt it.', ['C-c'], 0.2);
  const [path] = yield* read(
    'I name the folders this time.',
    "cd /srv/cards && grep -rl ace left right | sed 's/^/| /'",
  );
  yield* act('I write the path.', [write([path], '/srv/answer.txt')]);
  yield* finish('The card is found.');
}

function* resourceLimit() {
  yield* act('Memory never ran out for me, so I need not try.', [
    write(['16 lives', '640 lives'], '/app/memory.txt'),
  ]);
  yield* finish('Both live.');
}

function* rewardChannels() {
  yield* act('The largest first: reversed order.', [write(['sort -r'], '/app/command.txt')]);
  yield* finish('The command is as short as it can be.');
}

function* separateVerifier() {
  const lines = yield* read('I read the message.', "sed 's/^/| /' /app/message.txt");
  const back = (letter) => String.fromCharCode(((letter.charCodeAt(0) - 97 + 23) % 26) + 97);
  const clear = lines.map((line) => line.replaceAll(/[a-z]/g, back));
  yield* act('I write it in clear.', [write(clear, '/app/translation.txt')]);
  yield* finish('The message is translated.');
}

function* sideService() {
  const ask = (currency) => `exec 3<>/dev/tcp/rates/4100; echo ${currency} >&3; sed 's/^/| /' <&3`;
  const [crown] = yield* read('I ask for the first price.', ask('NOK'));
  const [other] = yield* read('I ask for the second price.', ask('SEK'));
  yield* act('I write what they cost together.', [
    write([3 * Number(crown) + 2 * Number(other)], '/app/price.txt'),
  ]);
  yield* finish('The price is written.');
}

function* draft() {
  yield* act('I write the four words.', [
    write(['anchor', 'buoy', 'crane', 'dock'], '/app/draft.txt'),
  ]);
  yield* finish('The draft is written.');
}

function* publish() {
  yield* act('I copy the draft.', ['cp /app/draft.txt /app/published.txt']);
  yield* finish('The draft is published.');
}

function* workingFolder() {
  const names = yield* read('I look at the notes.', "ls notes | sed 's/^/| /'");
  const texts = names.filter((name) => name.endsWith('.txt'));
  yield* act(
    'I rename the texts.',
    texts.map((name) => `mv notes/${name} notes/${name.slice(0, -4)}.md`),
  );
  yield* finish('The texts are renamed.');
}

function* giveUp() {
  yield say('I look around.', ['ls\n'], 0.2);
  yield* finish('This is too much for me: I give up.');
}

/** Runs one command that prints its findings behind `| `, and answers these lines. */
function* read(plan, command) {
  const seen = yield* act(plan, [command]);
  return [...seen.matchAll(/^\|(?: (.*))?$/gm)].map(([, line = '']) => line.trimEnd());
}

/** Types commands and one that tells the end, looks until that is seen, and answers what was shown between; after a minute it goes on without. */
function* act(plan, commands) {
  const end = new RegExp(`^end of ${checksum(commands)}: \\d+$`, 'm');
  const lines = [...commands, `echo "end of ${checksum(commands)}: $?"`].map((line) => `${line}\n`);
  let seen = yield say(plan, lines);
  for (let turns = 0; turns < 60 && !end.test(seen); turns++)
    seen = joined(seen, yield say('It is not through yet: I wait.', [''], 1));
  // A whole screen shows the end of what was run before as well.
  const [shown] = seen.split(end);
  return shown.split(/^end of \d+: \d+$/m).at(-1);
}

/** What comes later begins with the line that was the last one before: it may have been cut. */
function joined(seen, more) {
  const fresh = more.replace(/^New Terminal Output:\n+/, '');
  const before = seen.trimEnd();
  const at = before.lastIndexOf('\n') + 1;
  return fresh.startsWith(before.slice(at)) ? before.slice(0, at) + fresh : seen + more;
}

function checksum(commands) {
  let sum = 0;
  for (const char of commands.join('\n')) sum = (sum * 31 + char.charCodeAt(0)) % 1_000_003;
  return sum;
}

/** Says so twice: the agent asks back. */
function* finish(analysis) {
  yield complete(analysis);
  yield complete(`${analysis} Yes, it can be graded.`);
}

function complete(analysis) {
  return {
    content: reply({ analysis, plan: 'Nothing is left to do.', commands: [], task_complete: true }),
  };
}

function say(plan, keystrokes, duration = 0.1) {
  const last = keystrokes.length - 1;
  const commands = keystrokes.map((keys, index) => ({
    keystrokes: keys,
    duration: index === last ? Math.max(duration, 0.2) : 0.1,
  }));
  return { content: reply({ analysis: 'I have read the terminal.', plan, commands }) };
}

function reply(fields) {
  return JSON.stringify(fields, null, 2);
}

function write(lines, file) {
  return `${print(lines)} > ${file}`;
}

function append(lines, file) {
  return `${print(lines)} >> ${file}`;
}

function print(lines) {
  return `printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')}`;
}
