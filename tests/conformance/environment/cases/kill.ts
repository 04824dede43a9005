import assert from 'node:assert/strict';
import type { Environment } from '../../../../src/environments/environment.ts';
import type { CaseBench, ConformanceCase, Lingering } from '../adapter.ts';
import { eventually, hostProcessesWith, output, settle } from '../looking.ts';
import { newMarker } from './exec.ts';

export const nothingKept = { keys: new Set<string>() };

/** Starts a program that lingers; answers how many processes of it are alive. */
export async function linger(
  bench: CaseBench,
  environment: Environment,
  kind: Lingering,
  marker = newMarker(),
): Promise<() => Promise<number>> {
  const look = bench.adapter.processesWith ?? hostProcessesWith;
  const alive = async (): Promise<number> => (await look(marker)).length;
  await output(environment, bench.probes.linger(kind, marker), bench.signal);
  await eventually(`${kind} program runs`, async () => (await alive()) > 0);
  return alive;
}

export const killCases: readonly ConformanceCase[] = [
  {
    id: 'kill.detached',
    title:
      'a program in its own session, double-forked, without environment, deaf to SIGTERM is killed',
    async run(bench) {
      const environment = await bench.start();
      const alive = await linger(bench, environment, 'detached');
      const receipt = await environment.killProcesses(nothingKept, bench.signal);
      assert.equal(await alive(), 0);
      assert.ok(receipt.killed >= 1);
      assert.equal(receipt.remaining, 0);
    },
  },
  {
    id: 'kill.receipt',
    title: 'the receipt counts the killed, says where it looked and how long it took',
    async run(bench) {
      const environment = await bench.start();
      const alive = await linger(bench, environment, 'plain');
      await linger(bench, environment, 'plain');
      const receipt = await environment.killProcesses(nothingKept, bench.signal);
      assert.equal(receipt.killed, 2);
      assert.ok(receipt.confirmedBy.length > 0);
      assert.ok(receipt.durationMs >= 0 && receipt.durationMs < 10_000);
      assert.equal(await alive(), 0);
      const again = await environment.killProcesses(nothingKept, bench.signal);
      assert.equal(again.killed, 0);
    },
  },
  {
    id: 'kill.fork-loop',
    title: 'a program that makes children as fast as it may is killed to the last child',
    needs: 'pidsLimit',
    async run(bench) {
      const limits = { cpus: null, memoryMb: null, storageMb: null, pids: 120 };
      const environment = await bench.start({ limits });
      const alive = await linger(bench, environment, 'fork-loop');
      await settle(300);
      await environment.killProcesses(nothingKept, bench.signal);
      assert.equal(await alive(), 0);
      assert.equal(await output(environment, 'echo usable', bench.signal), 'usable');
    },
  },
  {
    id: 'kill.writer',
    title: 'after the kill a file that a program kept writing to does not change any more',
    async run(bench) {
      const environment = await bench.start();
      await linger(bench, environment, 'writer');
      const size = (): Promise<string> =>
        output(environment, 'stat -c %s /tmp/written', bench.signal);
      await eventually('it writes', async () => Number(await size()) > 1);
      await environment.killProcesses(nothingKept, bench.signal);
      const sizeAfter = await size();
      await settle(300);
      assert.equal(await size(), sizeAfter);
    },
  },
  {
    id: 'kill.survivors',
    title: 'processes of the snapshot survive, those that came later do not',
    async run(bench) {
      const environment = await bench.start();
      const kept = await linger(bench, environment, 'detached');
      const snapshot = await environment.snapshotProcesses(bench.signal);
      const killed = await linger(bench, environment, 'detached');
      await environment.killProcesses(snapshot, bench.signal);
      assert.equal(await killed(), 0);
      assert.ok((await kept()) > 0);
    },
  },
  {
    id: 'kill.other-user',
    title: 'processes of another user are killed too',
    needs: 'users',
    async run(bench) {
      const environment = await bench.start();
      const marker = newMarker();
      const look = bench.adapter.processesWith ?? hostProcessesWith;
      const command = bench.probes.linger('plain', marker);
      await environment.exec({ command, user: 'nobody' }, bench.signal);
      await eventually('it runs', async () => (await look(marker)).length > 0);
      await environment.killProcesses(nothingKept, bench.signal);
      assert.deepEqual(await look(marker), []);
    },
  },
  {
    id: 'kill.running-exec',
    title: 'a command that runs while the sandbox is cleared ends, and later ones work',
    async run(bench) {
      const environment = await bench.start();
      const marker = newMarker();
      const look = bench.adapter.processesWith ?? hostProcessesWith;
      const running = environment.exec({ command: `sleep 300.${marker}; echo on` }, bench.signal);
      const ended = running.then(
        ({ exitCode }) => exitCode !== 0,
        () => true,
      );
      await eventually('it runs', async () => (await look(marker)).length > 0);
      await environment.killProcesses(nothingKept, bench.signal);
      assert.equal(await ended, true);
      assert.equal(await output(environment, 'echo usable', bench.signal), 'usable');
    },
  },
  {
    id: 'kill.control-reopens',
    title: 'after the kill a new control channel can be opened',
    async run({ start, signal }) {
      const environment = await start();
      const before = await environment.openControl({ signal });
      await before.exec({ command: 'true' }, signal);
      await environment.killProcesses(nothingKept, signal);
      await assert.rejects(before.exec({ command: 'true' }, signal), { code: 'ENVIRONMENT_LOST' });
      const channel = await environment.openControl({ signal });
      assert.equal((await channel.exec({ command: 'echo again' }, signal)).stdout, 'again\n');
      await Promise.all([before.close(), channel.close()]);
    },
  },
  {
    id: 'kill.files-stay',
    title: 'the kill leaves files and the sandbox itself alone',
    async run({ start, signal }) {
      const environment = await start();
      await output(environment, 'echo kept > /kept', signal);
      await environment.killProcesses(nothingKept, signal);
      assert.equal(await environment.isAlive(signal), true);
      assert.equal(await output(environment, 'cat /kept', signal), 'kept');
    },
  },
];
