import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { whyNoRunc } from '../../environments/local/local-bench.ts';
import { killPools } from './killed-pool.ts';

const killed = { kills: 1, running: 2, poolSize: 3, createsPerSecond: 5, createMs: 500 };
const skip = whyNoRunc() ?? false;

describe('a run that was killed with a full pool', { skip, concurrency: true }, () => {
  // The other providers: npm run prove -- providers.
  test('has nothing on kubernetes soon after the next start', async () => {
    const options = { kind: 'kubernetes', ...killed, limitMs: 30_000 } as const;
    const { kills, problems } = await killPools(options);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      kills.map(({ agents, sandboxes }) => agents >= killed.running && sandboxes >= 5),
      [true],
    );
  });

  test('control: a next start that knows nothing of it leaves its sandboxes', async () => {
    const options = { kind: 'daytona', ...killed, limitMs: 4_000, isJournalLost: true } as const;
    const { problems } = await killPools(options);
    assert.match(problems.join(), /without an owner/);
  });
});
