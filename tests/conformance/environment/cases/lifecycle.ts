import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CaseBench, ConformanceCase } from '../adapter.ts';
import { output, settle } from '../looking.ts';
import { linger } from './kill.ts';

async function isListed({ provider, signal }: CaseBench, name: string): Promise<boolean> {
  return (await provider.list(signal)).some((sandbox) => sandbox.name === name);
}

export const lifecycleCases: readonly ConformanceCase[] = [
  {
    id: 'stop.keeps-files',
    title:
      'stop ends all processes and keeps the files: downloads work, commands are ENVIRONMENT_LOST',
    async run(bench) {
      const { start, folder, signal } = bench;
      const environment = await start();
      await output(environment, 'mkdir /kept; echo kept > /kept/file', signal);
      const alive = await linger(bench, environment, 'detached');
      await environment.stop(signal);
      await environment.stop(signal);
      assert.equal(await alive(), 0);
      await assert.rejects(environment.exec({ command: 'true' }, signal), {
        code: 'ENVIRONMENT_LOST',
      });
      assert.equal(await environment.isAlive(signal), false);
      await environment.downloadFile('/kept/file', join(folder, 'file'), signal);
      await environment.downloadDir('/kept', join(folder, 'tree'), signal);
      assert.equal(await readFile(join(folder, 'file'), 'utf8'), 'kept\n');
      assert.equal(await readFile(join(folder, 'tree', 'file'), 'utf8'), 'kept\n');
    },
  },
  {
    id: 'alive.true',
    title: 'a started sandbox is alive, a destroyed one is not, and asking never throws',
    async run({ start, signal }) {
      const environment = await start();
      assert.equal(await environment.isAlive(signal), true);
      await environment.destroy();
      assert.equal(await environment.isAlive(signal), false);
    },
  },
  {
    id: 'alive.removed-from-outside',
    title:
      'a sandbox that somebody else removed is not alive and its commands are ENVIRONMENT_LOST',
    async run({ start, otherProvider, signal }) {
      const environment = await start();
      await (await otherProvider()).destroyByName(environment.name);
      assert.equal(await environment.isAlive(signal), false);
      await assert.rejects(environment.exec({ command: 'true' }, signal), {
        code: 'ENVIRONMENT_LOST',
      });
    },
  },
  {
    id: 'destroy.deep-tree',
    title: 'destroy removes folders that are nested deeper than a path can name',
    async run(bench) {
      const environment = await bench.start();
      const nest = 'i=0; while [ $i -lt 40 ]; do mkdir "$d"; cd -P "$d"; i=$((i+1)); done';
      const command = `d=$(printf "%0200d" 0); mkdir /deep; cd /deep; ${nest}; echo > file`;
      await output(environment, command, bench.signal);
      const receipt = await environment.destroy();
      assert.ok(receipt.confirmedGone.length > 0);
      assert.equal(await isListed(bench, environment.name), false);
    },
  },
  {
    id: 'destroy.receipt',
    title: 'destroy removes a busy sandbox and says what it confirmed gone',
    async run(bench) {
      const environment = await bench.start();
      const alive = await linger(bench, environment, 'detached');
      const receipt = await environment.destroy();
      assert.equal(receipt.name, environment.name);
      assert.ok(receipt.confirmedGone.length > 0);
      assert.ok(receipt.durationMs >= 0);
      assert.equal(await alive(), 0);
      assert.equal(await isListed(bench, environment.name), false);
    },
  },
  {
    id: 'destroy.twice-and-at-once',
    title: 'destroy is idempotent, and calls at the same time share one ending',
    async run({ start }) {
      const environment = await start();
      const [one, other] = await Promise.all([environment.destroy(), environment.destroy()]);
      assert.equal(one, other);
      assert.equal((await environment.destroy()).name, environment.name);
    },
  },
  {
    id: 'destroy.during-exec',
    title: 'a command that runs while its sandbox is destroyed ends with ENVIRONMENT_LOST',
    async run({ start, signal }) {
      const environment = await start();
      const running = environment.exec({ command: 'sleep 60' }, signal);
      running.catch(() => undefined);
      await settle(300);
      await environment.destroy();
      await assert.rejects(running, { code: 'ENVIRONMENT_LOST' });
    },
  },
  {
    id: 'destroy.never-started',
    title: 'destroy of an environment that was never started resolves',
    async run({ create }) {
      const environment = create();
      assert.equal((await environment.destroy()).name, environment.name);
    },
  },
  {
    id: 'destroy.after-failed-start',
    title: 'destroy after a failed start leaves nothing',
    limitMs: 60_000,
    async run(bench) {
      const image = { kind: 'prebuilt', reference: 'slipway.invalid/absent:none' } as const;
      const environment = bench.create({ image });
      await assert.rejects(environment.start({ signal: bench.signal }));
      await environment.destroy();
      assert.equal(await isListed(bench, environment.name), false);
    },
  },
  {
    id: 'destroy.aborted-start',
    title: 'a start that is aborted at any moment and then destroyed leaves nothing',
    limitMs: 60_000,
    async run(bench) {
      for (const afterMs of [0, 5, 20, 60, 120, 250]) {
        const environment = bench.create();
        const controller = new AbortController();
        const reason = new Error(`aborted after ${afterMs} ms`);
        const timer = setTimeout(() => controller.abort(reason), afterMs);
        await environment.start({ signal: controller.signal }).catch((error: unknown) => {
          assert.equal(error, reason);
        });
        clearTimeout(timer);
        await environment.destroy();
        await settle(50);
        assert.equal(await isListed(bench, environment.name), false, `${afterMs} ms`);
      }
    },
  },
  {
    id: 'destroy.while-starting',
    title: 'destroy while start is under way leaves nothing, and start does not resolve later',
    limitMs: 60_000,
    async run(bench) {
      for (const afterMs of [0, 30, 100]) {
        const environment = bench.create();
        const starting = environment.start({ signal: bench.signal }).then(
          () => 'started',
          () => 'rejected',
        );
        await settle(afterMs);
        await environment.destroy();
        await starting;
        assert.equal(await environment.isAlive(bench.signal), false);
        assert.equal(await isListed(bench, environment.name), false, `${afterMs} ms`);
      }
    },
  },
  {
    id: 'destroy.by-name',
    title: 'another process removes a sandbox by its name, and one with a similar name stays',
    async run(bench) {
      const { name } = bench.spec();
      const environment = await bench.start({ name });
      const similar = await bench.start({ name: `${name}-2` });
      const alive = await linger(bench, environment, 'detached');
      const receipt = await (await bench.otherProvider()).destroyByName(name);
      assert.equal(receipt.name, name);
      assert.ok(receipt.confirmedGone.length > 0);
      assert.equal(await alive(), 0);
      assert.equal(await isListed(bench, name), false);
      assert.equal(await similar.isAlive(bench.signal), true);
    },
  },
  {
    id: 'destroy.by-unknown-name',
    title: 'removing a name that nothing carries resolves, also twice',
    async run({ provider, spec }) {
      const { name } = spec();
      for (let time = 0; time < 2; time += 1)
        assert.equal((await provider.destroyByName(name)).name, name);
    },
  },
  {
    id: 'list.labels',
    title: 'another process lists a sandbox with its labels until it is destroyed',
    async run(bench) {
      const labels = {
        storeId: 'store-of-case',
        runId: 'run-of-case',
        trial: 'Task name__AbC123x',
        expiresAt: '2031-02-03T04:05:06.000Z',
      };
      const environment = await bench.start({ labels });
      const other = await bench.otherProvider();
      const find = async () =>
        (await other.list(bench.signal)).filter(({ name }) => name === environment.name);
      assert.deepEqual(await find(), [{ name: environment.name, labels }]);
      await environment.stop(bench.signal);
      assert.deepEqual(await find(), [{ name: environment.name, labels }]);
      await environment.destroy();
      assert.deepEqual(await find(), []);
    },
  },
  {
    id: 'provider.preflight-and-close',
    title: 'preflight and close of a provider may be called twice, and leave its siblings alone',
    async run({ adapter, shared, signal }) {
      const provider = adapter.provider();
      await provider.preflight(signal);
      await provider.preflight(signal);
      assert.equal(provider.kind, adapter.kind);
      await Promise.all([provider.close(), provider.close()]);
      assert.equal(await (await shared()).isAlive(signal), true);
    },
  },
  {
    id: 'provider.many-at-once',
    title: 'eight sandboxes start, work and end side by side',
    limitMs: 60_000,
    async run(bench) {
      const started = await Promise.all(Array.from({ length: 8 }, () => bench.start()));
      const answers = await Promise.all(
        started.map((environment, index) =>
          output(environment, `echo ${index} > /own; cat /own`, bench.signal),
        ),
      );
      assert.deepEqual(answers, ['0', '1', '2', '3', '4', '5', '6', '7']);
      await Promise.all(started.map((environment) => environment.destroy()));
      for (const { name } of started) assert.equal(await isListed(bench, name), false);
    },
  },
];
