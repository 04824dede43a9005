import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerSettings } from '../../../src/environments/docker/container-settings.ts';
import type { ResourceLimits } from '../../../src/environments/environment.ts';
import { dockerSpec } from './docker-spec.ts';

function hostConfig(limits: Partial<ResourceLimits>, engineCpus = 2): Record<string, unknown> {
  const none = { cpus: null, memoryMb: null, storageMb: null, pids: null };
  const settings = containerSettings({
    spec: dockerSpec({ limits: { ...none, ...limits } }),
    image: 'image',
    networkMode: 'none',
    variables: {},
    isSecluded: false,
    engineCpus,
  });
  return settings['HostConfig'] as Record<string, unknown>;
}

test('limits become those of the engine; a memory limit allows no swap', () => {
  const { NanoCpus, Memory, MemorySwap, PidsLimit } = hostConfig({
    cpus: 0.5,
    memoryMb: 64,
    pids: 7,
  });
  assert.deepEqual([NanoCpus, Memory, MemorySwap, PidsLimit], [5e8, 2 ** 26, 2 ** 26, 7]);
});

test('a limit above the processors of the engine, which it refuses, is lowered to them', () => {
  assert.equal(hostConfig({ cpus: 16 })['NanoCpus'], 2e9);
  assert.equal(hostConfig({ cpus: 16 }, 0)['NanoCpus'], 16e9);
});

test('without limits none is set, and the container always has an init', () => {
  const settings = hostConfig({});
  for (const key of ['NanoCpus', 'Memory', 'MemorySwap', 'PidsLimit', 'Dns'])
    assert.ok(!(key in settings), key);
  assert.equal(settings['Init'], true);
});
