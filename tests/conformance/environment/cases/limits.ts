import assert from 'node:assert/strict';
import type { ResourceLimits } from '../../../../src/environments/environment.ts';
import type { ConformanceCase } from '../adapter.ts';
import { output } from '../looking.ts';

const limited = (limits: Partial<ResourceLimits>): { readonly limits: ResourceLimits } => ({
  limits: { cpus: null, memoryMb: null, storageMb: null, pids: null, ...limits },
});

export const limitCases: readonly ConformanceCase[] = [
  {
    id: 'limits.memory',
    title:
      'a command over the memory limit is killed and says so by its exit code; the sandbox lives on',
    needs: 'memoryLimit',
    async run({ start, probes, signal }) {
      const environment = await start(limited({ memoryMb: 128 }));
      assert.equal(await output(environment, probes.holdMemory(32), signal), 'held');
      const hog = await environment.exec({ command: probes.holdMemory(400) }, signal);
      assert.notEqual(hog.exitCode, 0);
      assert.equal(hog.stdout, '');
      assert.equal(await environment.isAlive(signal), true);
      assert.equal(await output(environment, 'echo alive', signal), 'alive');
    },
  },
  {
    id: 'limits.pids',
    title: 'a sandbox cannot have more processes than its limit, and recovers',
    needs: 'pidsLimit',
    async run({ start, probes, signal }) {
      const environment = await start(limited({ pids: 60 }));
      const [, forked] = /forked (\d+)/.exec(await output(environment, probes.fork(200), signal))!;
      assert.ok(Number(forked) > 5 && Number(forked) < 60, `forked ${forked}`);
      assert.equal(await output(environment, 'echo alive', signal), 'alive');
    },
  },
  {
    id: 'limits.cpu',
    title: 'a sandbox gets no more processor time than its limit',
    needs: 'cpuLimit',
    async run({ start, probes, signal }) {
      const environment = await start(limited({ cpus: 0.5 }));
      const used = Number(await output(environment, probes.burnCpu(3), signal));
      assert.ok(used < 2.2, `${used} s of processor in 3 s`);
    },
  },
  {
    id: 'limits.disk',
    title: 'a sandbox cannot write more than its disk quota, and lives on',
    needs: 'diskQuota',
    async run({ start, signal }) {
      const environment = await start(limited({ storageMb: 64 }));
      const command = 'head -c 200000000 /dev/zero > /filled';
      const filled = await environment.exec({ command }, signal);
      assert.notEqual(filled.exitCode, 0);
      assert.ok(Number(await output(environment, 'stat -c %s /filled', signal)) < 80_000_000);
      assert.equal(
        await output(environment, 'rm /filled; echo x > /small; cat /small', signal),
        'x',
      );
    },
  },
];
