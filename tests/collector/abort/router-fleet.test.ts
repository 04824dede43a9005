import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RouterFleet } from '../../../src/collector/abort/router-fleet.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { Engine } from '../../../src/engines/engine.ts';

test('an engine that could not be opened is tried again, and does not keep the fleet from closing', async () => {
  const opened: string[] = [];
  const closed: string[] = [];
  const fleet = new RouterFleet({
    ...{ routerUrl: null, engineUrls: ['http://a', 'http://b'], kind: 'sglang', apiKey: null },
    open: ({ baseUrl }) => {
      opened.push(baseUrl);
      if (baseUrl === 'http://b') return Promise.reject(new Error('no such engine'));
      const close = () => Promise.resolve(void closed.push(baseUrl));
      return Promise.resolve({ close } as unknown as Engine);
    },
  });
  await assert.rejects(fleet.discover(never), /no such engine/);
  await assert.rejects(fleet.discover(never), /no such engine/);
  assert.deepEqual(opened, ['http://a', 'http://b', 'http://b']);
  await fleet.close();
  assert.deepEqual(closed, ['http://a']);
});
