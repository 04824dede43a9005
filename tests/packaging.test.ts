import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { startEngineProcess } from './support/engine-process.ts';
import { startServeProcess } from './support/serve-process.ts';

const execute = promisify(execFile);
const root = path.resolve(import.meta.dirname, '..');

/** Folders on PATH in which a runtime for local sandboxes may be. */
const searchPath = [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/sbin', '/sbin'];
const canRunLocally = ['runc', 'crun'].some((name) =>
  searchPath.some((dir) => existsSync(path.join(dir, name))),
);

describe('the npm package', { timeout: 300_000 }, () => {
  let dir = '';
  let app = '';
  let version = '';

  const npm = async (cwd: string, ...argv: readonly string[]): Promise<string> => {
    // Variables of the npm that runs these tests would point the inner one at this repository.
    const env = Object.fromEntries(
      Object.entries(process.env).filter(
        ([name]) => !name.startsWith('npm_') && name !== 'NODE_TEST_CONTEXT' && name !== 'INIT_CWD',
      ),
    );
    const { stdout } = await execute('npm', [...argv], { cwd, env, timeout: 240_000 });
    return stdout;
  };

  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-package-'));
    app = path.join(dir, 'app');
    await mkdir(app);
    const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    version = manifest.version;
    await npm(root, 'pack', '--pack-destination', dir);
    const archive = (await readdir(dir)).find((name) => name.endsWith('.tgz'));
    assert.ok(archive, 'npm pack made no archive');
    await npm(app, 'init', '--yes');
    await npm(
      app,
      ...['install', '--prefer-offline', '--no-audit', '--no-fund', path.join(dir, archive)],
    );
  });

  after(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  it('holds the built program, its types, the bundled tasks and set-up, and no sources or tests', async () => {
    const installed = path.join(app, 'node_modules', 'slipway');
    for (const file of [
      'bin/slipway.js',
      'dist/cli/main.js',
      'dist/cli/main.d.ts',
      'tasks/file-answer/task.toml',
      'tasks/file-answer/environment/Dockerfile',
      'scripts/setup/main.js',
      'assets/vocabulary/tokenizer.json',
      'examples/policies/terminus-quickstart.js',
      'examples/controller.js',
      'python/slipway_runner/start.py',
      'README.md',
      'LICENSE',
    ]) {
      assert.ok(existsSync(path.join(installed, file)), `${file} is missing`);
    }
    for (const folder of ['src', 'tests', 'bench']) {
      assert.ok(!existsSync(path.join(installed, folder)), `${folder} is in the package`);
    }
  });

  it('answers as npx slipway', async () => {
    assert.equal((await npm(app, 'exec', '--', 'slipway', '--version')).trim(), version);
  });

  it(
    'runs a task from an empty folder',
    { skip: canRunLocally ? false : 'neither runc nor crun is installed' },
    async () => {
      const task = path.join('node_modules', 'slipway', 'tasks', 'file-answer');
      await npm(
        app,
        ...['exec', '--', 'slipway', 'run', '--path', task, '--agent', 'oracle'],
        ...['--env', 'local', '--job-name', 'packed'],
      );
      const job = path.join(app, 'jobs', 'packed');
      const trial = (await readdir(job)).find((name) => name.startsWith('file-answer__'));
      assert.ok(trial, 'the job has no trial');
      const result = JSON.parse(await readFile(path.join(job, trial, 'result.json'), 'utf8')) as {
        verifier_result: unknown;
      };
      assert.deepEqual(result.verifier_result, { rewards: { reward: 1 } });
    },
  );

  it('serves its mock engine, with the policy that it brings', async () => {
    const installed = path.join(app, 'node_modules', 'slipway');
    const policy = path.join(installed, 'examples/policies/terminus-quickstart.js');
    await using engine = await startEngineProcess(['--policy', policy], {
      program: path.join(installed, 'bin/slipway.js'),
    });
    const answer = await fetch(`${engine.apiBase}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'hello' }] }),
    });
    const { choices } = (await answer.json()) as {
      choices: { message: { content: string } }[];
    };
    assert.ok(choices[0]?.message.content);
  });

  it('serves rollouts, durably, to a controller that is written with it', async () => {
    const installed = path.join(app, 'node_modules', 'slipway');
    const state = path.join(dir, 'state');
    await mkdir(state);
    await using server = await startServeProcess(['--backend', 'null'], {
      stateDir: state,
      program: [path.join(installed, 'bin/slipway.js'), 'serve'],
    });
    const controller = path.join(app, 'controller.mjs');
    await copyFile(path.join(installed, 'examples/controller.js'), controller);
    const argv = [controller, '--server', server.url, '--rollouts', '3', 'anything'];
    const { stdout } = await execute(process.execPath, argv, { cwd: app });
    const results = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { status: string; reward: number });
    assert.deepEqual(
      results.map(({ status, reward }) => [status, reward]),
      [1, 2, 3].map(() => ['success', 1]),
    );
    assert.ok(existsSync(path.join(state, 'server', 'store.sqlite')));
  });
});
