import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { compileCollectConfig, keyOf } from '../../../src/config/collect/collect-config.ts';
import { isRolloutError } from '../../../src/core/errors.ts';

const least = { dataset: { file: 'rows.jsonl' }, server: { url: 'http://127.0.0.1:8000' } };

describe('the configuration of a collection', () => {
  it('needs a dataset and a server, and says what holds otherwise', () => {
    const config = compileCollectConfig(least, '/base');
    assert.equal(config.baseDir, '/base');
    assert.deepEqual(
      [config.batches, config.model, config.engines, config.rollouts.train, config.dataset.epochs],
      [null, null, null, true, 1],
    );
  });

  it('takes the example', () => {
    const file = new URL('../../../examples/collect/collect.toml', import.meta.url);
    const config = compileCollectConfig(parse(readFileSync(file, 'utf8')), '/base');
    assert.equal(config.hooks.group_filter, 'reward_spread');
  });

  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ['nothing', {}, /dataset[^]*server/],
    ['an unknown key', { ...least, datasets: {} }, /datasets/],
    ['an address that is none', { ...least, server: { url: 'localhost' } }, /server\.url/],
    ['a driver that there is not', { ...least, driver: 'sync' }, /driver/],
    [
      'staleness, which nobody tells it',
      { ...least, asynchronous: { max_staleness: 1 } },
      /max_stal/,
    ],
    [
      'every address without one to be reached at',
      { ...least, listen: { host: '::' } },
      /public_url/,
    ],
    ['no batch', { ...least, batches: 0 }, /batches/],
    ['a flag that was no number', { ...least, batches: NaN }, /batches/],
  ];
  for (const [title, document, message] of wrong)
    it(`refuses ${title}, with its place`, () => {
      assert.throws(
        () => compileCollectConfig(document, '/base'),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && message.test(error.message),
      );
    });

  it('finds keys by the names of their variables', () => {
    const variables = { KEY: ' secret ', EMPTY: ' ' };
    const find = (name: string | null) =>
      keyOf({ api_key_env: name }, { name: 'server', variables });
    assert.equal(find('KEY'), 'secret');
    assert.equal(find(null), null);
    for (const name of ['EMPTY', 'UNSET'])
      assert.throws(
        () => find(name),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === 'server.api_key_env',
      );
  });
});
