import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { joinedRules, noRules, routeRulesOf } from '../../../src/wire/rollout/route-rules.ts';

describe('the rules of a route', () => {
  it('are what the metadata of a rollout says', () => {
    assert.deepEqual(routeRulesOf(null), noRules);
    assert.deepEqual(routeRulesOf({ other: 1 }), noRules);
    assert.deepEqual(routeRulesOf({ slipway_gateway: null }), noRules);
    const sampling = { temperature: 0, stop: null, logit_bias: { '5': -100 } };
    const given = { max_turns: 3, max_in_flight: 2, sampling };
    assert.deepEqual(routeRulesOf({ slipway_gateway: given }), {
      pins: sampling,
      budgets: { max_turns: 3, max_in_flight: 2 },
    });
  });

  const wrong: readonly (readonly [given: unknown, said: RegExp])[] = [
    ['x', /^metadata\.slipway_gateway: [^\n]*$/],
    [{ max_turn: 3 }, /^metadata\.slipway_gateway: [^\n]*"max_turn"$/],
    [{ max_turns: 0 }, /^metadata\.slipway_gateway\.max_turns: /],
    [{ max_requests: 1.5 }, /^metadata\.slipway_gateway\.max_requests: /],
    [{ sampling: { temprature: 1 } }, /^metadata\.slipway_gateway\.sampling: [^\n]*"temprature"$/],
    [{ sampling: { temperature: '1' } }, /^metadata\.slipway_gateway\.sampling\.temperature: /],
    [{ sampling: { top_p: 2 } }, /^metadata\.slipway_gateway\.sampling\.top_p: /],
    [{ max_turns: 0, sampling: { max_tokens: 0 } }, /\.max_turns: [^\n]*; [^\n]*\.sampling\.max_tokens: /],
  ]; // prettier-ignore
  for (const [given, said] of wrong)
    it(`refuses ${JSON.stringify(given)} and names the field`, () => {
      assert.throws(
        () => routeRulesOf({ slipway_gateway: given }),
        (error) =>
          isRolloutError(error) && error.code === 'CONFIG_INVALID' && said.test(error.message),
      );
    });

  it('are the pins of the rollout over those of the server, and the smaller budgets', () => {
    const server = {
      pins: { temperature: 1, top_p: 0.9 },
      budgets: { max_turns: 5, max_requests: 9 },
    };
    const rollout = {
      pins: { temperature: 0.2, seed: 3 },
      budgets: { max_turns: 8, max_requests: 4, max_sampled_tokens: 7 },
    };
    assert.deepEqual(joinedRules(server, rollout), {
      pins: { temperature: 0.2, top_p: 0.9, seed: 3 },
      budgets: { max_turns: 5, max_requests: 4, max_sampled_tokens: 7 },
    });
    assert.deepEqual(joinedRules(noRules, noRules), noRules);
  });
});
