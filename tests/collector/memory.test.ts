import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, it } from 'node:test';
import { growth, runMemory } from './memory-run.ts';

setFlagsFromString('--expose-gc');
globalThis.gc = runInNewContext('gc') as typeof globalThis.gc;

describe('the memory of a collector', () => {
  it('does not grow with what was handed over', async () => {
    await runMemory({ rollouts: 400, every: 400 });
    const run = await runMemory({ rollouts: 1_600, every: 160 });
    assert.ok(growth(run) < 1_000_000, `${growth(run)} bytes per 1,000`);
  });
});
