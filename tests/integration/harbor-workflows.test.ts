import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { osmosisPeerDir } from '../../scripts/setup/osmosis-peer.js';
import { never } from '../../src/core/linked-abort.ts';
import { whyNoPython } from '../backends/harbor/harbor-bench.ts';
import {
  judgeHarborRollout,
  runHarborRollouts,
  tamperedHarborEvidence,
} from '../chaos/backends/harbor-rollouts.ts';
import { realProviders } from '../support/real-providers.ts';

const local = realProviders().find(({ kind }) => kind === 'local');
const noPackages = existsSync(osmosisPeerDir()) ? null : 'no osmosis-ai (npm run setup -- tests)';
const skip = local?.skip ?? whyNoPython() ?? noPackages ?? false;

test('a workflow and a grader of osmosis-ai run unchanged in sandboxes', { skip }, async () => {
  const { provider, close } = await local!.open();
  try {
    await provider.preflight(never);
    const evidence = await runHarborRollouts(provider, { count: 2, concurrency: 2 });
    assert.deepEqual(evidence.flatMap(judgeHarborRollout), []);
    for (const [what, spoilt] of tamperedHarborEvidence(evidence[0]!))
      assert.notDeepEqual(judgeHarborRollout(spoilt), [], `not found: ${what}`);
  } finally {
    await close();
  }
});
