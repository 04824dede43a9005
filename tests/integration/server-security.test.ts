/** The security suite against a real server, at a size for every run: `npm run prove -- security` is the whole. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { lookFromInside } from '../chaos/security/sandboxed-server.ts';
import { attackServer } from '../chaos/security/suite.ts';

test(
  'a server holds against whoever has one of its keys, or none',
  { timeout: 240_000 },
  async () => {
    const report = await attackServer({ held: 4, attempts: 42, hosts: ['0.0.0.0'] });
    const failed = report.checks.filter(({ problems }) => problems.length > 0);
    assert.deepEqual(failed, []);
    assert.ok(report.refusedAfterMs.length === 4);
    // The suite finds what is there to be found.
    assert.deepEqual(
      report.controls.filter(({ isFound }) => !isFound),
      [],
    );
  },
);

test('nothing of the keys is to be seen in a sandbox, and the control server answers nobody there', async () => {
  const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-inside-'));
  try {
    const { problems, reward, dumpBytes } = await lookFromInside(root);
    assert.deepEqual(problems, []);
    assert.equal(reward, 1);
    assert.ok(dumpBytes > 1_000);
  } finally {
    rmSync(root, { recursive: true });
  }
});
