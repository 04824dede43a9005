import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { crossAll } from './crossed-keys.ts';
import { hearLies } from './lying-upstreams.ts';
import { trickCount } from '../../chaos/security/key-tricks.ts';

describe('rollouts at the gateway, small (all of it: npm run prove -- isolation)', () => {
  it(
    'reach no other rollout by any key in any place of any dialect',
    { timeout: 60_000 },
    async () => {
      const { refused, ownRoute, problems, dead } = await crossAll({
        ...{ rollouts: 5, attempts: trickCount },
      });
      assert.deepEqual(problems, []);
      assert.ok(refused > 150 && ownRoute > 10, `${refused} refused, ${ownRoute} own`);
      assert.deepEqual([dead.ownRoute, dead.problems], [0, []]);
    },
  );

  it('are found to be mixed up where their keys are', { timeout: 60_000 }, async () => {
    const { problems } = await crossAll({ rollouts: 5, attempts: trickCount, swaps: true });
    assert.ok(problems.length > 0);
  });

  it('learn no key from an upstream that redirects or tells it', { timeout: 60_000 }, async () => {
    const { answers, problems } = await hearLies('sk-upstream-5f1c9a7e2b');
    assert.deepEqual(problems, []);
    assert.ok(answers > 90);
  });
});

describe('a key that is a word', () => {
  it('is left in what the model says', { timeout: 60_000 }, async () => {
    const { heard } = await hearLies('EMPTY');
    for (const dialect of ['chat', 'responses', 'messages'])
      assert.match(heard.get(`${dialect}: says the key in its text`) ?? '', /Bearer EMPTY\./);
  });
});
