import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { ProgramFolder } from '../../../src/agents/installed/program-folder.ts';
import type { ProgramRunner } from '../../../src/agents/installed/program-runner.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';

const program = { name: 'tool', packages: ['tool@1.2.3'] };

describe('programs of agents on this machine', () => {
  let dir = '';
  let calls: (readonly string[])[] = [];
  beforeEach(async () => {
    dir = path.join(await mkdtemp(path.join(os.tmpdir(), 'slipway-programs-')), 'agents');
    calls = [];
  });
  afterEach(() => rm(path.dirname(dir), { recursive: true, force: true }));

  /** npm as far as it matters: a file in the folder that it is given. */
  const npm: ProgramRunner = async (argv, { cwd }) => {
    calls.push(argv);
    await mkdir(path.join(cwd, 'node_modules/tool'), { recursive: true, mode: 0o700 });
    const file = path.join(cwd, 'node_modules/tool/run');
    await writeFile(file, '#!/bin/sh\n');
    await chmod(file, 0o700);
    return { exitCode: 0, stdout: '', stderr: '' };
  };
  const folder = (run: ProgramRunner, extraCaBundle: string | null = null): ProgramFolder =>
    new ProgramFolder({
      ...{ dir, run, extraCaBundle, variables: { PATH: '/bin' } },
      locks: new FileLocks(systemClock),
    });

  test('are installed once, however many ask, and without scripts of packages', async () => {
    const [one, other] = [folder(npm), folder(npm)];
    const found = await Promise.all([
      one.folderOf(program, never),
      one.folderOf(program, never),
      other.folderOf(program, never),
    ]);
    assert.equal(new Set(found).size, 1);
    assert.equal(calls.length, 1);
    assert.deepEqual(calls[0]?.slice(0, 3), ['npm', 'install', '--ignore-scripts']);
    assert.equal(calls[0].at(-1), 'tool@1.2.3');
    await folder(npm).folderOf(program, never);
    assert.equal(calls.length, 1, 'nor by a later process');
  });

  test('of another version are in another folder', async () => {
    const one = folder(npm);
    const first = await one.folderOf(program, never);
    const second = await one.folderOf({ ...program, packages: ['tool@1.2.4'] }, never);
    assert.notEqual(first, second);
    assert.equal(calls.length, 2);
  });

  test('can be read and run by every user of a sandbox', async () => {
    const found = await folder(npm).folderOf(program, never);
    const modes = await Promise.all(
      ['', 'node_modules/tool', 'node_modules/tool/run'].map(async (name) =>
        ((await stat(path.join(found, name))).mode & 0o777).toString(8),
      ),
    );
    assert.deepEqual(modes, ['755', '755', '755']);
  });

  test('that could not be installed leave nothing, say why, and are tried again', async () => {
    const broken: ProgramRunner = async (argv, options) => {
      await npm(argv, options);
      return { exitCode: 1, stdout: '', stderr: 'npm error code E404\nnpm error not found\n' };
    };
    await assert.rejects(folder(broken).folderOf(program, never), {
      code: 'AGENT_SETUP_FAILED',
      message: /tool@1\.2\.3.*npm ended with 1/,
      detail: /E404/,
    });
    const left = (await readdir(dir)).filter((name) => !name.endsWith('.lock'));
    assert.deepEqual(left, []);
    await folder(npm).folderOf(program, never);
    assert.equal(calls.length, 2);
  });

  test('need npm, and say so', async () => {
    const absent: ProgramRunner = () => Promise.reject(new Error('spawn npm ENOENT'));
    await assert.rejects(folder(absent).folderOf(program, never), {
      code: 'AGENT_SETUP_FAILED',
      message: /npm cannot be started: spawn npm ENOENT/,
      remedy: /npm in PATH/,
    });
  });

  test('are fetched with the certificates that the user named', async () => {
    let seen: string | undefined;
    const watched: ProgramRunner = (argv, options) => {
      seen = options.variables['npm_config_cafile'];
      return npm(argv, options);
    };
    await folder(watched, '/etc/own.pem').folderOf(program, never);
    assert.equal(seen, '/etc/own.pem');
  });

  test('whose installation is given up leave nothing', async () => {
    const stopped = new AbortController();
    const hanging: ProgramRunner = async (argv, options) => {
      await npm(argv, options);
      stopped.abort(new Error('given up'));
      options.signal.throwIfAborted();
      return await new Promise((_, reject) =>
        options.signal.addEventListener('abort', () => reject(options.signal.reason as Error)),
      );
    };
    await assert.rejects(folder(hanging).folderOf(program, stopped.signal), /given up/);
    await assert.doesNotReject(folder(npm).folderOf(program, never));
    const left = (await readdir(dir)).filter((name) => name.includes('.partial-'));
    assert.deepEqual(left, []);
  });
});
