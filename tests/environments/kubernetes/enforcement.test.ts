import assert from 'node:assert/strict';
import { test } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { Enforcement } from '../../../src/environments/kubernetes/network/enforcement.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { JumpingClock } from '../../fakes/jumping-clock.ts';
import { ClusterBench } from '../../fakes/kubernetes/cluster-bench.ts';
import { whyNoRunc } from '../local/local-bench.ts';

test(
  'a cluster that takes policies and enforces none starts no sandbox without a network',
  { skip: whyNoRunc() ?? false },
  async () => {
    await using bench = await ClusterBench.open({ enforcesPolicies: false });
    const provider = bench.provider({}, { clock: new JumpingClock(new Date()) });
    await provider.preflight(never);
    const spec = environmentSpec('not-enforced', { network: { mode: 'no-network' } });
    const environment = provider.environment(spec);
    await assert.rejects(environment.start({ signal: never }), {
      code: 'ENVIRONMENT_UNAVAILABLE',
      field: 'environment.kwargs.network_policies',
    });
    await environment.destroy();
    await provider.close();
  },
);

test('a policy that is enforced a moment late is enforced, and is asked about once', async () => {
  const enforcement = new Enforcement(new JumpingClock());
  const answers = [0, 0, 7];
  const ask = (): Promise<number> => Promise.resolve(answers.shift() ?? assert.fail('asked again'));
  await enforcement.prove(ask, never);
  await enforcement.prove(ask, never);
  assert.deepEqual(answers, []);
});

test('an image that cannot be asked leaves the question open', async () => {
  const enforcement = new Enforcement(new JumpingClock());
  const answers = [8, 7];
  const ask = (): Promise<number> => Promise.resolve(answers.shift() ?? assert.fail('asked again'));
  await enforcement.prove(ask, never);
  await enforcement.prove(ask, never);
  assert.deepEqual(answers, []);
});
