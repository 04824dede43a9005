/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client's documents are classes without constructors that take anything */
/** The official client against the fake API server: what it sends is understood, and what it gets it understands. So the fake is held to the real wire. */
import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import {
  AuthorizationV1Api,
  CoreV1Api,
  Exec,
  KubeConfig,
  NetworkingV1Api,
  Watch,
  type V1Status,
} from '@kubernetes/client-node';
import { baseImage, whyNoRunc } from '../local/local-bench.ts';
import { ClusterBench } from '../../fakes/kubernetes/cluster-bench.ts';

test(
  'the official client makes, watches, runs commands in, and removes a pod',
  { skip: whyNoRunc() ?? false },
  async () => {
    await using bench = await ClusterBench.open();
    const { namespace } = bench.cluster;
    const config = new KubeConfig();
    config.loadFromString(bench.cluster.kubeconfig());
    const core = config.makeApiClient(CoreV1Api);

    const review = await config.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
      body: { spec: { resourceAttributes: { namespace, verb: 'create', resource: 'pods' } } },
    });
    assert.equal(review.status?.allowed, true);

    const seen: string[] = [];
    const running = Promise.withResolvers<undefined>();
    const watching = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/pods`,
      { labelSelector: 'app=tests' },
      (type: string, pod: { readonly status?: { readonly phase?: string } }) => {
        seen.push(`${type} ${pod.status?.phase}`);
        if (pod.status?.phase === 'Running') running.resolve(undefined);
      },
      () => undefined,
    );
    const body = {
      metadata: { name: 'official', labels: { app: 'tests' } },
      spec: {
        containers: [{ name: 'main', image: baseImage, command: ['sleep', 'infinity'] }],
        terminationGracePeriodSeconds: 1,
      },
    };
    const created = await core.createNamespacedPod({
      namespace,
      body: { apiVersion: 'v1', kind: 'Pod', ...body },
    });
    assert.ok(created.metadata?.creationTimestamp instanceof Date);
    await running.promise;
    watching.abort();
    assert.equal(seen[0], 'ADDED Pending');

    await assert.rejects(
      core.createNamespacedPod({ namespace, body: { apiVersion: 'v1', kind: 'Pod', ...body } }),
      { code: 409 },
    );
    const list = await core.listNamespacedPod({ namespace, labelSelector: 'app=tests' });
    assert.deepEqual(
      list.items.map(({ metadata }) => metadata?.name),
      ['official'],
    );

    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const ended = Promise.withResolvers<V1Status>();
    await new Exec(config).exec(
      namespace,
      'official',
      'main',
      ['sh', '-c', 'cat; echo bad >&2; exit 3'],
      stdout,
      stderr,
      Readable.from(['in']),
      false,
      (status) => {
        ended.resolve(status);
        stdout.end();
        stderr.end();
      },
    );
    const status = await ended.promise;
    assert.equal(status.reason, 'NonZeroExitCode');
    assert.equal(status.details?.causes?.[0]?.message, '3');
    assert.deepEqual([await text(stdout), await text(stderr)], ['in', 'bad\n']);

    const networking = config.makeApiClient(NetworkingV1Api);
    await networking.createNamespacedNetworkPolicy({
      namespace,
      body: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: 'official' },
        spec: { podSelector: { matchLabels: { app: 'tests' } }, policyTypes: ['Egress'] },
      },
    });
    await networking.deleteNamespacedNetworkPolicy({ namespace, name: 'official' });

    const dying = await core.deleteNamespacedPod({ namespace, name: 'official' });
    assert.equal(dying.metadata?.deletionGracePeriodSeconds, 1);
    for (;;) {
      const gone = await core.readNamespacedPod({ namespace, name: 'official' }).then(
        () => null,
        (error: unknown) => (error as { readonly code: number }).code,
      );
      if (gone === null) continue;
      assert.equal(gone, 404);
      break;
    }
  },
);
