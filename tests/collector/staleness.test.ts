import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { startEngineProcess } from '../support/engine-process.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { runPause, runStaleness, staleEngineFlags, staleServeFlags } from './staleness-run.ts';

describe('the asynchronous driver at a real server', () => {
  it('hands over what the engine says it sampled, nothing beyond the limit, and fails no agent in a pause', async () => {
    const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-staleness-'));
    try {
      const engineLog = path.join(root, 'engine.ndjson');
      const flags = ['--log', engineLog, '--token-latency', 'constant:4'];
      await using engine = await startEngineProcess([...staleEngineFlags, ...flags]);
      await using server = await startServeProcess(staleServeFlags, { stateDir: root });
      const at = { serverUrl: server.url, engineUrl: engine.url, engineLog };
      const result = await runStaleness(
        {
          ...{ limit: 1, everyMs: 350, updates: 4, groupSize: 2, batchGroups: 2, startGroups: 6 },
          ...{ runName: 'short', capMs: 200 },
        },
        at,
      );
      assert.deepEqual(result.problems, []);
      assert.deepEqual(result.failures, []);
      assert.deepEqual([result.version, result.failedUpdates], [4, 1]);
      assert.ok(result.groups + result.staleGroups > 0);
      const pause = await runPause({ pauseMs: 200, runName: 'pause', capMs: 200 }, at);
      assert.ok(pause.held > 0);
      assert.equal(pause.groups, 4);
      assert.deepEqual(pause.failures, []);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
