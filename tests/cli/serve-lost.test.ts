/** A server that loses the thread of its store, or the process of its backend, ends itself, with an error, and everything is taken up by the next start. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { RolloutController } from '../../src/callbacks/rollout-controller.ts';
import { nullRollout, prompt } from '../app/serve-fixture.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { startServeProcess, type ServeProcess } from '../support/serve-process.ts';
import { ownLeftovers } from '../support/own-leftovers.ts';
import { until } from '../support/until.ts';

const killer = path.join(import.meta.dirname, 'thread-killer.ts');

async function inFolder(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-lost-'));
  try {
    await body(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function start(root: string, flags: readonly string[]) {
  return await startServeProcess(flags, { stateDir: root, nodeArgs: ['--import', killer] });
}

const fieldOf = async (url: string, name: string): Promise<unknown> =>
  ((await (await fetch(url)).json()) as Readonly<Record<string, unknown>>)[name];

/** Its exit code, by itself. */
async function lose(part: 'store' | 'backend', { child }: ServeProcess): Promise<number | null> {
  const closed = once(child, 'close');
  if (part === 'store') child.kill('SIGUSR2');
  else process.kill(backendOf(child.pid ?? 0), 'SIGKILL');
  const [code] = (await closed) as [number | null];
  return code;
}

/** The child of a server that is the process of its backend. */
function backendOf(server: number): number {
  const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim();
  const backend = children
    .split(' ')
    .find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('backend-process'));
  assert.ok(backend !== undefined);
  return Number(backend);
}

describe('a server that loses a part of it', { timeout: 180_000 }, () => {
  it('ends with an error when it is the store, and brings what it had accepted to its end later', () =>
    inFolder(async (root) => {
      const flags = ['--backend', 'null', '--max-concurrent', '1', '--shutdown-drain-sec', '3600'];
      const first = await start(root, flags);
      let { url } = first;
      await using controller = new RolloutController({ serverUrl: () => url });
      await controller.start();
      const begun = controller.run(nullRollout('begun', { duration_ms: 80_000_000 }));
      await until('it runs', async () => {
        return (await fieldOf(`${url}/rollout/begun/status`, 'status')) === 'running';
      });
      const waiting = controller.run(nullRollout('waiting'));
      await until('it waits', async () => {
        return (await fieldOf(`${url}/rollout/waiting/status`, 'status')) === 'queued';
      });
      assert.equal(await lose('store', first), 1);
      assert.match(first.errors(), /^STORE_FAILED/m);
      await using second = await start(root, flags);
      ({ url } = second);
      assert.equal((await begun).status, 'failure');
      assert.equal((await waiting).status, 'success');
    }));

  it('ends with an error when it is the backend: what ran fails as retryable, its sandbox goes with the next start', () =>
    inFolder(async (root) => {
      await using task = await taskFolder({
        ...plainTask,
        'solution/solve.sh': '#!/bin/bash\nsleep 100000\n',
      });
      await writeFile(
        path.join(root, 'slipway.toml'),
        '[backend.native]\nagent = "oracle"\nenvironment = "local"\n',
      );
      const flags = ['--backend', 'native', '--shutdown-drain-sec', '3600'];
      const first = await start(root, flags);
      let { url } = first;
      await using controller = new RolloutController({ serverUrl: () => url });
      await controller.start();
      const running = controller.run({
        ...{ rollout_id: 'runs', initial_messages: prompt },
        metadata: { harbor_task: task.dir },
      });
      await until('its agent runs', async () => {
        const rollout = await fetch(`${url}/api/v1/rollouts/runs`);
        return (await rollout.text()).includes('"running agent"');
      });
      assert.equal(await lose('backend', first), 1);
      assert.match(first.errors(), /^BACKEND_LOST/m);
      const { status, grader } = await running;
      assert.equal(status, 'failure');
      assert.match(JSON.stringify(grader), /process of the backend/);
      const left = (): Promise<readonly string[]> =>
        ownLeftovers(root, { stateDir: root, withinMs: 0 });
      assert.notDeepEqual(await left(), []);
      const second = await start(root, flags);
      ({ url } = second);
      await until('its sandbox is gone', async () =>
        (await left()).every((line) => !line.includes(`${root}/sandboxes/`)),
      );
      assert.equal(await second.stop(), 0);
    }));
});
