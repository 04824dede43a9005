import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { killServer } from './killed-server.ts';
import { trialBackends, whyNoTrials } from './trial-servers.ts';
import { judgeRollout, type RolloutEvidence, type SeenCallback } from './rollout-evidence.ts';

describe('a server that is killed', () => {
  it('brings every accepted rollout to one end, with the same bytes again where it sends again', async () => {
    const report = await killServer({
      ...{ kills: 3, live: 12, seed: 3 },
      kinds: ['callback', 'starting', 'cancel'],
    });
    assert.deepEqual(report.problems, []);
    assert.ok(report.interrupted > 0 && report.resent > 0, 'the deaths met rollouts and callbacks');
    assert.ok(report.kills.some(({ recovered }) => recovered > 0));
  });

  for (const backend of trialBackends)
    it(
      `leaves no sandbox of ${backend}, also when it was killed between the create call and its answer`,
      { skip: whyNoTrials(backend) ?? false },
      async () => {
        const report = await killServer({
          ...{ backend, kills: 1, live: 4, seed: 5, kinds: ['creating'] },
          orphanLimitMs: 60_000,
        });
        assert.deepEqual(report.problems, []);
        assert.ok(report.kills[0]!.sandboxes > 0);
      },
    );

  it('control: callbacks that a restart does not take up are missed', async () => {
    const report = await killServer({
      ...{ kills: 1, live: 12, seed: 3, kinds: ['callback'] },
      isOutboxOff: true,
    });
    assert.match(
      report.problems.join('\n'),
      /no end \(its server says (success|failure)\)|no completion/,
    );
  });
});

const body = (reward: number | null, status = 'success'): string =>
  JSON.stringify({ status, sample: { reward } });
const seen = (channel: SeenCallback['channel'], text: string, key = `${channel}-key`) => ({
  ...{ channel, key, text },
  isTaken: true,
});
const completion = seen('completion', '{"status":"success"}');
const sound: RolloutEvidence = {
  ...{ id: 'r', reward: 0.5, end: 'callback', commits: 1, callbacksAtCancel: 0 },
  callbacks: [completion, seen('grader', body(0.5)), completion, seen('grader', body(0.5))],
  ...{ status: 'success', statusReward: 0.5 },
};
const cancelled: RolloutEvidence = {
  ...{ ...sound, end: 'cancelled', commits: 0, callbacks: [completion], callbacksAtCancel: 1 },
  ...{ status: 'cancelled', statusReward: null },
};

describe('the judge of killed servers', () => {
  it('finds nothing wrong with one end, sent twice, and with a cancellation while grading', () => {
    assert.deepEqual([...judgeRollout(sound), ...judgeRollout(cancelled)], []);
  });

  const rows: readonly [string, RolloutEvidence, RegExp][] = [
    [
      'a second body',
      { ...sound, callbacks: [...sound.callbacks, seen('grader', body(0))] },
      /two different grader bodies/,
    ],
    [
      'a second key',
      { ...sound, callbacks: [...sound.callbacks, seen('grader', body(0.5), 'other')] },
      /two grader keys/,
    ],
    [
      'a completion that was never taken',
      { ...sound, callbacks: [{ ...completion, isTaken: false }, seen('grader', body(0.5))] },
      /no completion/,
    ],
    ['a second commit', { ...sound, commits: 2 }, /2 ends were committed/],
    ['no commit', { ...sound, commits: 0 }, /without a committed grade/],
    ['no end', { ...sound, end: 'open' }, /no end/],
    [
      'a grade before the completion',
      { ...sound, callbacks: sound.callbacks.slice(1) },
      /before the completion/,
    ],
    ['a made-up reward', { ...sound, reward: 0.4 }, /a reward of 0.5/],
    [
      'another reward in the status',
      { ...sound, statusReward: 0.4 },
      /its server says success 0.4/,
    ],
    [
      'a callback after its cancellation',
      { ...cancelled, callbacksAtCancel: 0 },
      /after the cancellation/,
    ],
    ['a committed cancellation', { ...cancelled, commits: 1 }, /yet committed/],
    [
      'a cancellation that the server does not know',
      { ...cancelled, status: 'running' },
      /says running/,
    ],
  ];
  for (const [what, evidence, expected] of rows)
    it(`finds ${what}`, () => {
      assert.match(judgeRollout(evidence).join('\n'), expected);
    });
});
