/** What the quickstart collected, against what the script of the mock engine promises and what a trainer relies on. */

/**
 * @typedef {import('../../src/wire/api/collected-lines.ts').CollectedGroupLine} GroupLine
 * @typedef {import('../../src/wire/api/collected-lines.ts').CollectedBatchLine} BatchLine
 */

/**
 * @typedef {object} Expected
 * @property {Readonly<Record<string, number>>} rewards By the label of a row.
 * @property {number} batches
 * @property {number} groups Of a batch.
 * @property {number} members Of a group.
 */

/**
 * @param {string} text The lines that were collected.
 * @returns {{ readonly groups: GroupLine[], readonly batches: BatchLine[] }}
 */
export function readCollected(text) {
  /** @type {GroupLine[]} */
  const groups = [];
  /** @type {BatchLine[]} */
  const batches = [];
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const document = JSON.parse(line);
    if (document.type === 'group') groups.push(document);
    else batches.push(document);
  }
  return { groups, batches };
}

/**
 * @param {ReturnType<typeof readCollected>} collected
 * @param {Expected} expected
 * @returns {string[]} What is not as it should be.
 */
export function problemsOf({ groups, batches }, expected) {
  const problems = batches.flatMap((batch) => batchProblems(batch, expected));
  if (batches.length !== expected.batches) {
    problems.push(`${batches.length} batches for ${expected.batches}`);
  }
  if (groups.length !== expected.batches * expected.groups) {
    problems.push(`${groups.length} groups for ${expected.batches * expected.groups}`);
  }
  if (new Set(groups.map(({ group }) => group)).size !== groups.length) {
    problems.push('a group came twice');
  }
  return [...problems, ...groups.flatMap((group) => groupProblems(group, expected))];
}

/** @param {BatchLine} line @param {Expected} expected */
function batchProblems({ batch, started, abort }, expected) {
  const problems = [];
  if (abort !== null && !abort.is_complete) problems.push(`batch ${batch}: not all is gone`);
  if (started.groups < expected.groups) problems.push(`batch ${batch}: too few groups started`);
  return problems;
}

/** @param {GroupLine} line @param {Expected} expected */
function groupProblems({ group, label, members }, expected) {
  const problems = [];
  if (members.length !== expected.members)
    problems.push(`group ${group}: ${members.length} members`);
  for (const { rollout_id: id, reward, samples } of members) {
    const promised = expected.rewards[label ?? ''];
    if (reward !== promised) problems.push(`${id}: reward ${reward} for ${promised}`);
    if (trainedTokens(samples) === 0) problems.push(`${id}: no token to train`);
  }
  return problems;
}

/** @param {GroupLine['members'][number]['samples']} samples */
function trainedTokens(samples) {
  return samples.flatMap(({ loss_mask: mask }) => mask).filter((bit) => bit === 1).length;
}

/** @param {readonly GroupLine[]} groups */
export function groupTable(groups) {
  const lines = [
    ['batch', 'group', 'task', 'rewards', 'samples', 'trained tokens', 'slowest'],
    ...groups.map(({ batch, group, label, members }) => {
      const samples = members.flatMap((member) => member.samples);
      const slowest = Math.max(...members.map(({ duration_ms: ms }) => ms));
      const rewards = members.map(({ reward }) => `${reward ?? '–'}`).join('  ');
      return [
        ...[`${batch + 1}`, `${group}`, label ?? '', rewards, `${samples.length}`],
        ...[`${trainedTokens(samples)}`, `${(slowest / 1000).toFixed(1)} s`],
      ];
    }),
  ];
  const widths = (lines[0] ?? []).map((_, at) =>
    Math.max(...lines.map((cells) => cells[at]?.length ?? 0)),
  );
  return lines
    .map((cells) =>
      cells
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
