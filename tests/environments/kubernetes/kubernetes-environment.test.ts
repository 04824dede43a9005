/** What a cluster may do to us: lost answers, refusals, silent streams, missing rights. Sandboxes that are nothing, on a real wire. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { apiFailure } from '../../../src/environments/kubernetes/api/api-error.ts';
import { ApiClient } from '../../../src/environments/kubernetes/api/api-client.ts';
import { attachExec } from '../../../src/environments/kubernetes/api/exec-stream.ts';
import { openAccess } from '../../../src/environments/kubernetes/access/cluster-access.ts';
import { kubernetesPorts } from '../../../src/environments/kubernetes/options.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { ClusterBench } from '../../fakes/kubernetes/cluster-bench.ts';
import { ServiceFaults } from '../../fakes/sandbox-host/service-faults.ts';

const light = { light: true } as const;

async function opened(bench: ClusterBench) {
  const provider = bench.provider();
  await provider.preflight(never);
  return provider;
}

describe('a pod of a cluster', () => {
  test('a creation whose answer is lost is found again, and there is one pod', async () => {
    const faults = new ServiceFaults();
    await using bench = await ClusterBench.open({ ...light, host: { faults } });
    const provider = await opened(bench);
    const environment = provider.environment(environmentSpec('lost-answer'));
    faults.plant('lost-answer');
    await environment.start({ signal: never });
    assert.equal(faults.count('lost-answer'), 1);
    const posts = bench.cluster.requests.filter(
      ({ method, path }) => method === 'POST' && path.endsWith('/pods'),
    );
    assert.deepEqual(
      posts.map(({ status }) => status),
      [201, 409],
    );
    assert.equal(bench.host.list().length, 1);
    await environment.destroy();
    await provider.close();
    assert.deepEqual(bench.leftovers(), []);
  });

  test('a pod of the same name that another start made is not taken over, nor removed by its failure', async () => {
    await using bench = await ClusterBench.open(light);
    const provider = await opened(bench);
    const first = provider.environment(environmentSpec('same-name'));
    await first.start({ signal: never });
    const second = provider.environment(environmentSpec('same-name'));
    await assert.rejects(second.start({ signal: never }), {
      code: 'ENVIRONMENT_START_FAILED',
      retryable: false,
    });
    assert.equal(await first.isAlive(never), true);
    await first.destroy();
    await provider.close();
  });

  test('a start that is given up while the API server creates leaves nothing', async () => {
    const host = { limits: { createMs: 300 } };
    await using bench = await ClusterBench.open({ ...light, host });
    const provider = await opened(bench);
    const environment = provider.environment(environmentSpec('given-up'));
    const controller = new AbortController();
    const starting = environment.start({ signal: controller.signal });
    const reason = new Error('enough');
    setTimeout(() => controller.abort(reason), 30);
    await assert.rejects(starting, reason);
    await environment.destroy();
    await provider.close();
    assert.deepEqual(bench.leftovers(), []);
  });

  test('a failed pod is a start that may be tried again', async () => {
    const faults = new ServiceFaults();
    await using bench = await ClusterBench.open({ ...light, host: { faults } });
    const provider = await opened(bench);
    const environment = provider.environment(environmentSpec('failed'));
    faults.plant('failed-create');
    await assert.rejects(environment.start({ signal: never }), {
      code: 'ENVIRONMENT_START_FAILED',
      retryable: true,
    });
    await environment.destroy();
    await provider.close();
    assert.deepEqual(bench.leftovers(), []);
  });

  test('too many creations, and too many pods, are throttled, with the time that is asked for', async () => {
    const host = { limits: { createsPerSecond: 1 } };
    await using bench = await ClusterBench.open({ ...light, host });
    await using full = await ClusterBench.open({ ...light, podQuota: 0 });
    const [provider, fullProvider] = await Promise.all([opened(bench), opened(full)]);
    const first = provider.environment(environmentSpec('first'));
    await first.start({ signal: never });
    const second = provider.environment(environmentSpec('second'));
    const throttled = { code: 'ENVIRONMENT_THROTTLED', retryable: true };
    await assert.rejects(second.start({ signal: never }), { ...throttled, retryAfterMs: 1000 });
    const third = fullProvider.environment(environmentSpec('third'));
    await assert.rejects(third.start({ signal: never }), { ...throttled, retryAfterMs: null });
    await Promise.all([first, second, third].map((each) => each.destroy()));
    await Promise.all([provider, fullProvider].map((each) => each.close()));
    assert.deepEqual([...bench.leftovers(), ...full.leftovers()], []);
  });

  test('a creation and each further try of it are admitted first', async () => {
    const faults = new ServiceFaults();
    await using bench = await ClusterBench.open({ ...light, host: { faults } });
    const provider = await opened(bench);
    const environment = provider.environment(environmentSpec('admitted'));
    faults.plant('lost-answer');
    let admitted = 0;
    const admitCreate = (): Promise<void> => {
      admitted += 1;
      return Promise.resolve();
    };
    await environment.start({ signal: never, admitCreate });
    assert.equal(admitted, 2);
    await environment.destroy();
    await provider.close();
  });

  test('a host name in an allow list, and a Dockerfile, are refused before anything is made', async () => {
    await using bench = await ClusterBench.open(light);
    const provider = await opened(bench);
    const hosts = [{ kind: 'hostname', value: 'example.org' }] as const;
    const network = { mode: 'allowlist', hosts } as const;
    const image = { kind: 'dockerfile', contextDir: '/nowhere', contextHash: 'x' } as const;
    for (const [overrides, field] of [
      [{ network }, 'environment.allowed_hosts'],
      [{ image }, 'environment/Dockerfile'],
    ] as const)
      await assert.rejects(
        provider.environment(environmentSpec('refused', overrides)).start({ signal: never }),
        { code: 'CAPABILITY_UNSUPPORTED', field },
      );
    assert.deepEqual(bench.leftovers(), []);
    await provider.close();
  });

  test('variables arrive literally though the API replaces references in them', async () => {
    await using bench = await ClusterBench.open(light);
    const provider = await opened(bench);
    const value = 'a $(PATH) $$(HOME) $x $';
    const environment = provider.environment(environmentSpec('literal', { env: { A: value } }));
    await environment.start({ signal: never });
    const { expanded } = await import('../../fakes/kubernetes/kubelet.ts');
    const [pod] = bench.cluster.stores.pods.list();
    const { containers } = pod!['spec'] as {
      readonly containers: readonly { readonly env: readonly { readonly value: string }[] }[];
    };
    assert.equal(expanded(containers[0]!.env[0]!.value, { PATH: 'replaced' }), value);
    await environment.destroy();
    await provider.close();
  });

  test('a stream that is taken and stays silent is given up after some pings', async () => {
    const faults = new ServiceFaults();
    await using bench = await ClusterBench.open({ ...light, host: { faults } });
    const provider = await opened(bench);
    const environment = provider.environment(environmentSpec('silent'));
    await environment.start({ signal: never });
    const ports = kubernetesPorts({});
    const access = await openAccess(
      { kubeconfig: bench.kubeconfig, context: null, namespace: null },
      ports,
    );
    const client = new ApiClient(access, ports);
    faults.plant('half-open');
    const place = { client, namespace: access.namespace, pod: 'silent', container: 'sandbox' };
    const stream = await attachExec(
      { ...place, pingMs: 20 },
      { argv: ['true'], onOutput: () => undefined },
      never,
    );
    const end = await stream.ended;
    assert.equal(end.kind, 'lost');
    assert.match(String((end as { readonly cause: unknown }).cause), /silent/);
    await client.close();
    await environment.destroy();
    await provider.close();
  });

  test('a server of version 4 of the stream protocol serves commands too', async () => {
    await using bench = await ClusterBench.open({
      ...light,
      execProtocols: ['v4.channel.k8s.io'],
    });
    const provider = await opened(bench);
    const environment = provider.environment(environmentSpec('version-4'));
    await environment.start({ signal: never });
    const stdin = Buffer.from('counted');
    assert.equal((await environment.exec({ command: 'cat', stdin }, never)).exitCode, 0);
    await environment.destroy();
    await provider.close();
  });
});

describe('preflight of a cluster', () => {
  test('rights that are missing are listed', async () => {
    const denied = ['create pods/exec', 'update networkpolicies'];
    await using bench = await ClusterBench.open({ ...light, denied });
    const provider = bench.provider();
    await assert.rejects(provider.preflight(never), {
      code: 'ENVIRONMENT_UNAVAILABLE',
      message: /create pods\/exec, update networkpolicies in the namespace sandboxes/,
    });
    await provider.close();
  });

  test('without network policies their rights are not asked for, and restricted networks are not offered', async () => {
    await using bench = await ClusterBench.open({ ...light, denied: ['create networkpolicies'] });
    const provider = bench.provider({ networkPolicies: false });
    await provider.preflight(never);
    const { noNetwork, allowlist, dynamicNetworkPolicy } = provider.capabilities;
    assert.deepEqual([noNetwork, allowlist, dynamicNetworkPolicy], [false, false, false]);
    const environment = provider.environment(environmentSpec('no-policy'));
    await environment.start({ signal: never });
    await environment.destroy();
    assert.deepEqual(bench.cluster.stores.networkpolicies.list(), []);
    await provider.close();
  });

  test('a token that is not taken, and a server that is not there, are unavailable environments', async () => {
    const bench = await ClusterBench.open(light);
    const stranger = bench.provider();
    Object.assign(bench.cluster, { token: 'another' });
    await assert.rejects(stranger.preflight(never), { code: 'ENVIRONMENT_UNAVAILABLE' });
    await stranger.close();
    await bench[Symbol.asyncDispose]();
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const failure = apiFailure(refused, { code: 'EXEC_FAILED', phase: 'environment', what: 'x' });
    assert.deepEqual([failure.code, failure.retryable], ['ENVIRONMENT_UNAVAILABLE', true]);
  });
});
