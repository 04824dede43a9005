/** What names code in Python, and the Python that carries it out: paths of the file are those of its folder, names stay names. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Fields } from '../../../src/config/fields.ts';
import { readMachine } from '../../../src/config/machine.ts';
import { compileServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { isPython, readCodeReference } from '../../../src/wire/runner/code-reference.ts';

const compile = (document: Fields, variables: Record<string, string> = {}) =>
  compileServeConfig(
    { flags: {}, document, file: '/etc/slipway/slipway.toml' },
    readMachine({ HOME: '/me', ...variables }, '/here'),
  );
const local = (fields: Fields) => compile({ backend: { local: fields } }).backend.local;

describe('a reference to code', () => {
  const references: readonly (readonly [string, string | null, string | null, boolean])[] = [
    ['rollouts/search.ts:Search', 'rollouts/search.ts', null, false],
    ['search.mjs:Search', 'search.mjs', null, false],
    ['rollouts/search.py:Search', 'rollouts/search.py', null, true],
    ['search.py:Search', 'search.py', null, true],
    ['search:Search', null, 'search', true],
    ['my_rollouts.search:Search', null, 'my_rollouts.search', true],
    ['./search:Search', './search', null, false],
    ['C:/a b/search.ts:Search', 'C:/a b/search.ts', null, false],
  ];
  for (const [text, file, module, isOfPython] of references)
    it(`${text} is ${module === null ? 'a file' : 'a module'}${isOfPython ? ' of Python' : ''}`, () => {
      const found = readCodeReference(text);
      assert.deepEqual(found, { file, module, name: 'Search' });
      assert.equal(isPython(found), isOfPython);
    });

  it('names an object behind a colon', () => {
    for (const text of ['', 'search', ':Search', 'search:', 'search:a-b', 'search:1'])
      assert.equal(readCodeReference(text), null, text);
  });
});

describe('settings of code in Python', () => {
  it('keep a module and locate a file', () => {
    const { workflow, grader } = local({ workflow: 'my.code:W', grader: 'code.py:G' });
    assert.deepEqual([workflow, grader], ['my.code:W', '/etc/slipway/code.py:G']);
  });

  it('take a configuration as a table or as an object', () => {
    const { workflowConfig, graderConfig } = local({
      workflow_config: { name: 'mine' },
      grader_config: './code.py:config',
    });
    assert.deepEqual(workflowConfig, { name: 'mine' });
    assert.equal(graderConfig, '/etc/slipway/code.py:config');
    assert.throws(() => local({ workflow_config: 'no object' }), { code: 'CONFIG_INVALID' });
  });

  it('name an interpreter by a path of the file, or by a name on PATH', () => {
    const named = (interpreter: string) => compile({ python: { interpreter } }).python.interpreter;
    assert.equal(compile({}).python.interpreter, 'python3');
    assert.equal(named('python3.13'), 'python3.13');
    assert.equal(named('.venv/bin/python'), '/etc/slipway/.venv/bin/python');
    assert.equal(compile({}, { SLIPWAY_PYTHON: './py' }).python.interpreter, '/here/py');
  });

  it('list folders, in a variable as PATH does', () => {
    assert.deepEqual(compile({ python: { path: ['src', '/opt'] } }).python.path, [
      '/etc/slipway/src',
      '/opt',
    ]);
    assert.deepEqual(compile({}, { SLIPWAY_PYTHONPATH: 'src:/opt:' }).python.path, [
      '/here/src',
      '/opt',
    ]);
    assert.throws(() => compile({ python: { path: [1] } }), { code: 'CONFIG_INVALID' });
  });
});
