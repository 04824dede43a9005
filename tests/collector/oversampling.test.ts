import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { startEngineProcess } from '../support/engine-process.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { problemsOf, runOversampling, type OversamplingSize } from './oversampling-run.ts';

/** By its seed three groups take 0.6 s, one of them with a lost attempt, and two take 17 s and more. */
const size: OversamplingSize = {
  ...{ batchGroups: 3, startGroups: 6, groupSize: 4, badRows: [1], lossShare: 0.04, seed: 18 },
  ...{ scaleMs: 20, alpha: 0.5, capMs: 60_000, hasHook: true, drainMs: 20_000 },
};

describe('a batch under oversampling at a real server', () => {
  it('is handed over, its stragglers are gone with receipts, and every group is accounted for', async () => {
    const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-oversampling-'));
    try {
      const engineLog = path.join(root, 'engine.ndjson');
      const flags = ['--backend', 'null', '--max-concurrent', '64', '--max-queue-depth', '64'];
      await using engine = await startEngineProcess(['--log', engineLog]);
      await using server = await startServeProcess(flags, { stateDir: root });
      const at = { serverUrl: server.url, engineUrl: engine.url, engineLog };
      const result = await runOversampling(size, at);
      assert.deepEqual(problemsOf(size, result), []);
      assert.ok(result.receipt.rollouts.some(({ how }) => how === 'ended'));
      assert.equal(result.report.rolloutsRefilled, 1);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
