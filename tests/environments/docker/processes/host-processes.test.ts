import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { NamespaceScan } from '../../../../src/environments/docker/processes/host-processes.ts';

describe('the pid namespace of a container', () => {
  it('is not looked at once its first process is somebody else, least of all the host', async () => {
    const ownGroup = /^\d+:[^:]*:(\/.+)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    assert.equal(await new NamespaceScan().pidsOf(process.pid, 'f'.repeat(64)), null);
    // A process whose cgroup fits, but which shares our pid namespace: a pid that the host was given again.
    assert.equal(await new NamespaceScan().pidsOf(process.pid, ownGroup ?? '/'), null);
    assert.equal(await new NamespaceScan().pidsOf(4_194_304, 'f'.repeat(64)), null);
  });
});
