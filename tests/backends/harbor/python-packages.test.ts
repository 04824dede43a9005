import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import {
  PythonPackages,
  sandboxPythonSchema,
  withoutCredentials,
  type SandboxPython,
} from '../../../src/backends/harbor/python-packages.ts';
import { fingerprintOf } from '../../../src/backends/harbor/requirement-files.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { taskFolder, type TaskFolder } from '../../fakes/task-folder.ts';
import { writeWheels } from '../../fakes/wheels.ts';

/** Older than whatever runs pip here. */
const old: SandboxPython = {
  version: '3.7.9',
  implementation: 'cpython',
  ...{ abi_flags: '', machine: 'x86_64', libc: ['glibc', '2.31'] },
};

function packagesOf({ dir }: TaskFolder, { python = 'python3', clock = new ManualClock() } = {}) {
  return new PythonPackages(
    { file: path.join(dir, 'requirements.txt'), list: [], cwd: dir },
    {
      ...{
        dataDir: path.join(dir, 'data'),
        clock,
        variables: { ...process.env, PIP_RETRIES: '0' },
      },
      interpreter: { python, path: [] },
    },
  );
}

describe('packages for the Python of a sandbox', () => {
  it('are installed once, for that Python and not for the one with pip, into a folder that everybody may read', async () => {
    await using folder = await taskFolder({
      'requirements.txt': '--no-index\n--find-links wheels\none\n',
      // It is nobody's business but that of whoever works there.
      'json.py': 'raise RuntimeError("a module of the project in place of one of pip")\n',
      'wheels/.keep': '',
    });
    writeWheels(path.join(folder.dir, 'wheels'), [
      { name: 'one', version: '1', needs: ['ancient; python_version < "3.8"', 'modern; python_version >= "3.8"'] },
      ...['ancient', 'modern'].map((name) => ({ name, version: '2', program: `${name}-program` })),
    ]); // prettier-ignore
    const packages = packagesOf(folder);
    await packages.open();
    const [dir, same] = await Promise.all([
      packages.install(old, never),
      packages.install(old, never),
    ]);
    assert.equal(dir, same);
    assert.match(path.basename(dir), /^[0-9a-f]{16}-cpython3\.7-x86_64-glibc2\.31$/);
    const names = (await readdir(dir)).filter((name) => name.endsWith('.py'));
    assert.deepEqual(names.sort(), ['ancient.py', 'one.py']);
    assert.equal(await readFile(path.join(dir, 'one.py'), 'utf8'), "WORD = 'one 1'\n");
    const modeOf = async (name: string): Promise<number> =>
      (await stat(path.join(dir, name))).mode & 0o777;
    assert.deepEqual(
      [await modeOf(''), await modeOf('one.py'), await modeOf('ancient-program')],
      [0o755, 0o644, 0o755],
    );
    assert.deepEqual(await readdir(path.dirname(dir)), [path.basename(dir)]);
    // A later server runs no pip for them.
    const later = packagesOf(folder, { python: '/nowhere/python3' });
    await later.open();
    assert.equal(await later.install(old, never), dir);
    // One with other requirements removes them.
    await writeFile(path.join(folder.dir, 'requirements.txt'), 'two\n');
    await packagesOf(folder).open();
    assert.deepEqual(await readdir(path.dirname(dir)), []);
  });

  it('that cannot be installed are refused with the last words of pip, and leave nothing', async () => {
    await using folder = await taskFolder({
      'requirements.txt': '--no-index\nno-such-package-at-all\n',
    });
    const packages = packagesOf(folder);
    await packages.open();
    await assert.rejects(packages.install(old, never), (error) => {
      assert.ok(isRolloutError(error, 'REQUIREMENTS_FAILED'));
      assert.match(
        error.message,
        /for Python 3\.7\.9 cannot be installed: ERROR: .*no-such-package-at-all/,
      );
      assert.match(error.detail ?? '', /no-such-package-at-all/);
      assert.equal(error.field, 'backend.harbor.requirements');
      return true;
    });
    assert.deepEqual(await readdir(path.join(folder.dir, 'data', 'packages')), []);
  });

  it('are taken from whoever was faster with them', async () => {
    await using folder = await taskFolder({
      'requirements.txt': '--no-index\n--find-links wheels\none\n',
      'wheels/.keep': '',
    });
    writeWheels(path.join(folder.dir, 'wheels'), [{ name: 'one', version: '1' }]);
    const [first, second] = [packagesOf(folder), packagesOf(folder)];
    await first.open();
    await second.open();
    const dirs = await Promise.all([first.install(old, never), second.install(old, never)]);
    assert.equal(dirs[0], dirs[1]);
    assert.deepEqual(await readdir(path.dirname(dirs[0])), [path.basename(dirs[0])]);
  });

  it('are not kept as what was asked for when that has changed since', async () => {
    await using folder = await taskFolder({
      'requirements.txt': '--no-index\n--find-links wheels\none==1\n',
      'wheels/.keep': '',
    });
    writeWheels(
      path.join(folder.dir, 'wheels'),
      ['1', '2'].map((version) => ({ name: 'one', version })),
    );
    const packages = packagesOf(folder);
    await packages.open();
    const changed = '--no-index\n--find-links wheels\none==2\n';
    await writeFile(path.join(folder.dir, 'requirements.txt'), changed);
    await assert.rejects(packages.install(old, never), {
      code: 'REQUIREMENTS_FAILED',
      message: /the requirements have changed since they were read/,
    });
    assert.deepEqual(await readdir(path.join(folder.dir, 'data', 'packages')), []);
  });

  it('that could not be installed are not tried again at once, but after a minute', async () => {
    await using folder = await taskFolder({ 'requirements.txt': 'one\n' });
    const clock = new ManualClock();
    const packages = packagesOf(folder, { python: '/nowhere/python3', clock });
    await packages.open();
    const failure = async (): Promise<unknown> =>
      await packages.install(old, never).catch((error: unknown) => error);
    const first = await failure();
    assert.ok(isRolloutError(first, 'REQUIREMENTS_FAILED'));
    assert.match(first.message, /\/nowhere\/python3 cannot be started/);
    assert.equal(await failure(), first);
    clock.advance(60_000);
    assert.notEqual(await failure(), first);
  });

  it('are others when a file changes that their requirements name', async () => {
    await using folder = await taskFolder({
      'requirements.txt':
        '-r more.txt\n./wheels/one-1-py3-none-any.whl # by hand\n--find-links=wheels\n',
      'more.txt': 'two\n-c limits.txt\n-r requirements.txt\n',
      'limits.txt': 'two<2\n',
      'wheels/one-1-py3-none-any.whl': 'one',
    });
    const cwd = folder.dir;
    const now = (): Promise<string> =>
      fingerprintOf({ file: path.join(cwd, 'requirements.txt'), list: [], cwd });
    const seen = [await now()];
    assert.equal(await now(), seen[0]);
    for (const [name, content] of [
      ['limits.txt', 'two<3\n'],
      ['more.txt', 'three\n-c limits.txt\n'],
      ['wheels/one-1-py3-none-any.whl', 'eno'],
      ['wheels/two-1-py3-none-any.whl', 'two'],
    ] as const) {
      await writeFile(path.join(cwd, name), content);
      seen.push(await now());
    }
    assert.equal(new Set(seen).size, seen.length);
    const list = ['one', './wheels/one-1-py3-none-any.whl'];
    const ofList = await fingerprintOf({ file: null, list, cwd });
    await writeFile(path.join(cwd, list[1] ?? ''), 'other');
    assert.notEqual(await fingerprintOf({ file: null, list, cwd }), ofList);
    const gone = { file: path.join(cwd, 'gone.txt'), list: [], cwd };
    await assert.rejects(fingerprintOf(gone), {
      ...{ code: 'CONFIG_INVALID', field: 'backend.harbor.requirements' },
    });
  });

  it('are for a Python that an image may tell of, and for nothing that could pass for another', () => {
    for (const said of [old, { ...old, libc: ['', ''] }, { ...old, abi_flags: 't' }])
      assert.ok(sandboxPythonSchema.safeParse(said).success);
    for (const wrong of [
      { libc: ['glibc2', '.31'] },
      { libc: ['glibc', '2.99999999'] },
      { machine: 'x86_64-glibc2' },
      { machine: '../x86_64' },
      { machine: 'x'.repeat(300) },
      { implementation: 'cpython3.7-x86' },
    ])
      assert.equal(sandboxPythonSchema.safeParse({ ...old, ...wrong }).success, false);
  });

  const texts = [
    ['https://me:pass@word@index/simple/x', 'https://[REDACTED]@index/simple/x'],
    ['Looking in git+ssh://token@host/x and', 'Looking in git+ssh://[REDACTED]@host/x and'],
    ['https://index/simple?token=abc#x done', 'https://index/simple?[REDACTED]#x done'],
    ['name@1 of me@host', 'name@1 of me@host'],
  ] as const;
  for (const [said, told] of texts)
    it(`are told of without credentials: ${told}`, () => {
      assert.equal(withoutCredentials(said), told);
    });
});
