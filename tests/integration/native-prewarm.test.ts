/** `slipway serve` that is to prepare tasks, in real sandboxes: one that can start, one whose health check fails, one whose image does not build. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { taskFolder } from '../fakes/task-folder.ts';
import { startSlipway } from '../support/slipway-cli.ts';
import { answerTask, environmentTable } from '../trial/trial-bench.ts';

test(
  'a server whose tasks cannot be prepared names all of them and ends with an error, listening nowhere',
  { timeout: 240_000 },
  async () => {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-prewarm-'));
    await using good = await taskFolder(answerTask);
    await using sick = await taskFolder({
      ...answerTask,
      'task.toml': `${environmentTable}[environment.healthcheck]\ncommand = "echo printed-by-it; false"\ninterval_sec = 0.1\nretries = 1\n`,
    });
    await using broken = await taskFolder({
      ...answerTask,
      'task.toml': '[environment]\n',
      'environment/Dockerfile': 'FROM debian:bookworm-slim\nRUN echo printed-by-it && exit 3\n',
    });
    try {
      const tasks = [good.dir, sick.dir, { harbor_task: broken.dir }];
      await writeFile(
        path.join(root, 'slipway.json'),
        JSON.stringify({
          backend: { kind: 'native', native: { agent: 'oracle', prewarm: tasks } },
        }),
      );
      const { ended } = startSlipway(
        ['serve', '--json', '--port', '0', '--config', 'slipway.json'],
        { cwd: root, stateDir: path.join(root, 'state') },
      );
      const { exitCode, stdout, stderr } = await ended;
      assert.equal(exitCode, 1, stderr);
      assert.equal(stdout, '', 'it never said that it is ready');
      assert.match(stderr, /^PREWARM_FAILED .*2 of 3 tasks/m);
      assert.ok(stderr.includes(`${sick.dir} [HEALTHCHECK_FAILED]; `), stderr);
      assert.ok(stderr.includes(`${broken.dir} [IMAGE_BUILD_FAILED]; `), stderr);
      assert.doesNotMatch(stderr, /printed-by-it/);
      const left = readdirSync(path.join(root, 'state', 'server', 'trials'));
      assert.equal(left.length, 2);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  },
);
