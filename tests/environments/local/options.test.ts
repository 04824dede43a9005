import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileLocalOptions } from '../../../src/environments/local/options.ts';

const dirs = { stateDir: '/s', cacheDir: '/c' };

test('defaults are filled in and the result is frozen', () => {
  const options = compileLocalOptions(dirs);
  assert.equal(options.runtime, 'auto');
  assert.equal(options.publicNetwork, 'isolated');
  assert.ok(Object.isFrozen(options));
});

for (const [title, options, field] of [
  ['a relative folder', { ...dirs, stateDir: 'x' }, 'stateDir'],
  ['an unknown key', { ...dirs, nope: 1 }, ''],
  ['an unknown runtime', { ...dirs, runtime: 'docker' }, 'runtime'],
  ['plain processes without consent', { ...dirs, runtime: 'process' }, 'runtime'],
] as const)
  test(`${title} is CONFIG_INVALID`, () => {
    assert.throws(() => compileLocalOptions(options as never), { code: 'CONFIG_INVALID', field });
  });
