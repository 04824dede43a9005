import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileNativeOptions } from '../../../src/backends/native/native-options.ts';
import { optionsOfRows } from '../../../src/backends/native/row-agents.ts';
import { isRolloutError } from '../../../src/core/errors.ts';

const given = {
  ...{ agent: 'terminus-2', agent_options: { parser_name: 'xml' }, reward_key: 'score' },
  environment: 'docker',
};
const base = compileNativeOptions(given);
const optionsOf = optionsOfRows(given, base);

describe('the agent of a row', () => {
  it('is the configured one, with its options, unless the row names another', () => {
    for (const metadata of [null, {}, { slipway_agent: null }, { slipway_agent: 'terminus-2' }])
      assert.equal(optionsOf(metadata), base);
  });

  it('has no options of the configured one, and everything else of the server', () => {
    const options = optionsOf({ slipway_agent: 'oracle' });
    assert.equal(options.agent.name, 'oracle');
    assert.deepEqual(options.agent.kwargs, {});
    assert.equal(options.rewardKey, 'score');
    assert.equal(options.environment.type, 'docker');
    assert.equal(optionsOf({ slipway_agent: 'oracle' }), options);
  });

  for (const name of ['nobody', 'module:Class', 'custom-chat-completions', '', 7, ['oracle']])
    it(`is not ${JSON.stringify(name)}`, () => {
      assert.throws(
        () => optionsOf({ slipway_agent: name }),
        (error) => isRolloutError(error, 'REFERENCE_INVALID'),
      );
    });
});
