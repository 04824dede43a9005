import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrialSummary } from '../../src/app/run-job.ts';
import { trialTable } from '../../src/cli/trial-table.ts';

function summary(changes: Partial<TrialSummary> = {}): TrialSummary {
  return {
    trialName: 'file-answer__abcdefg',
    taskName: 'slipway/file-answer',
    source: null,
    agentName: 'oracle',
    modelName: null,
    rewards: { reward: 1 },
    failure: null,
    tokens: { input: null, cache: null, output: null, costUsd: null },
    turns: null,
    lacksTokenIds: false,
    phaseTimes: { boot_ms: 300, agent_setup_ms: 12, agent_ms: 61_000, total_ms: 70_000 },
    startedAt: null,
    ...changes,
  };
}

const reported = { tokens: { input: 123_456, cache: 0, output: 7_890, costUsd: null }, turns: 30 };

const refused: TrialSummary['failure'] = {
  exceptionType: 'DownloadVerifierDirError',
  code: 'VERIFIER_OUTPUT_UNAVAILABLE',
  category: 'infrastructure',
  phase: 'verifier',
  message: 'gone',
  field: null,
  remedy: null,
};

const widthOf = (table: string): number =>
  Math.max(...table.split('\n').map((line) => line.length));

const headingsOf = (table: string): string[] => (table.split('\n')[0] ?? '').split(/ {2,}/);

test('an agent that reports nothing has no columns for turns and tokens, and every time is shown', () => {
  assert.deepEqual(headingsOf(trialTable([summary()])), [
    ...['task', 'trial', 'reward', 'result'],
    ...['image', 'boot', 'setup', 'agent', 'verifier', 'total'],
  ]);
});

test('turns and tokens stand where an agent reported them, and a dash where another did not', () => {
  const table = trialTable([summary(reported), summary()]);
  assert.match(table, /turns +tokens in +out/);
  assert.match(table, /ok +30 +123456 +7890 /);
  assert.match(table, /ok +– +– +– /);
});

test('an organisation that all tasks share moves into the heading', () => {
  const shared = trialTable([summary(), summary({ taskName: 'slipway/no-network' })]);
  assert.match(shared, /^task of slipway {2}/);
  assert.match(shared, /^no-network /m);
  const mixed = trialTable([summary(), summary({ taskName: 'other/no-network' })]);
  assert.match(mixed, /^other\/no-network /m);
});

test('of several channels the main one is shown, and that there are more', () => {
  const table = trialTable([
    summary({ rewards: { correct: 1, reward: 0.5, style: 0.25 } }),
    summary({ rewards: { correct: 1, style: 0.25 } }),
    summary({ rewards: null }),
  ]);
  assert.match(table, / 0\.5 \(\+2\) +ok/);
  assert.match(table, / 1 \(\+1\) +ok/);
  assert.match(table, / – +ok/);
});

for (const [what, trials] of [
  ['a long code', [summary({ failure: refused }), summary({ failure: refused })]],
  [
    'turns, tokens and a long code',
    [summary(reported), summary({ ...reported, failure: refused })],
  ],
  [
    'a task with a long name',
    [summary({ ...reported, taskName: `slipway/${'long-'.repeat(30)}` })],
  ],
] as const)
  test(`${what} fits into 100 columns, and agent and total are kept`, () => {
    const table = trialTable(trials);
    assert.ok(widthOf(table) <= 100, `${widthOf(table)} columns\n${table}`);
    assert.match(table, /agent +(verifier +)?total/);
  });
