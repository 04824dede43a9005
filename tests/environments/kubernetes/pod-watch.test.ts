import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LinkedAbort, never } from '../../../src/core/linked-abort.ts';
import { Scope } from '../../../src/core/scope.ts';
import { openAccess } from '../../../src/environments/kubernetes/access/cluster-access.ts';
import { ApiClient } from '../../../src/environments/kubernetes/api/api-client.ts';
import {
  compileKubernetesOptions,
  kubernetesPorts,
} from '../../../src/environments/kubernetes/options.ts';
import type { Pod } from '../../../src/environments/kubernetes/pods/pod-status.ts';
import { PodWatch } from '../../../src/environments/kubernetes/pods/pod-watch.ts';
import { podPath, readPod } from '../../../src/environments/kubernetes/removal.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { ClusterBench } from '../../fakes/kubernetes/cluster-bench.ts';
import { until } from '../../support/until.ts';

test('a wait for what has just happened ends, though the watch ran already and told it to others', async () => {
  await using bench = await ClusterBench.open({ light: true });
  await using scope = new Scope();
  const provider = bench.provider();
  scope.defer(() => provider.close());
  await provider.preflight(never);
  const ports = kubernetesPorts({});
  const access = await openAccess(
    compileKubernetesOptions({ kubeconfig: bench.kubeconfig }),
    ports,
  );
  const client = new ApiClient(access, ports);
  scope.defer(() => client.close());
  const watch = new PodWatch(client, access.namespace, ports);
  scope.defer(() => watch.close());
  const [stays, goes] = ['stays', 'goes'].map((name) =>
    provider.environment(environmentSpec(name)),
  );
  assert.ok(stays !== undefined && goes !== undefined);
  await Promise.all([stays.start({ signal: never }), goes.start({ signal: never })]);
  const known = await readPod(client, podPath(client, 'goes'), never);

  using limit = new LinkedAbort([], { ms: 5_000, reason: () => new Error('nothing was told') });
  let told = 0;
  const look = (): null => {
    told += 1;
    return null;
  };
  const other = watch.until({ name: 'stays', pod: null }, look, limit.signal);
  other.catch(() => undefined);
  await until('the watch runs', () => told > 0);
  await goes.destroy();
  const isGone = (pod: Pod | null): object | null => (pod === null ? {} : null);
  await watch.until({ name: 'goes', pod: known }, isGone, limit.signal);

  limit.abort(new Error('enough'));
  await assert.rejects(other, /enough/);
  await stays.destroy();
});
