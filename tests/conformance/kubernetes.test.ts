/** Pods of a fake API server, whose sandboxes are real ones of this machine. */
import { after, test } from 'node:test';
import { baseImage, whyNoRunc } from '../environments/local/local-bench.ts';
import { ClusterBench } from '../fakes/kubernetes/cluster-bench.ts';
import { environmentSuite } from './environment-suite.ts';
import { kubernetesDeclines } from './kubernetes-declines.ts';
import { reducedCases } from './reduced-cases.ts';

const reason = whyNoRunc();
if (reason === null) {
  const bench = await ClusterBench.open();
  after(() => bench[Symbol.asyncDispose]());
  environmentSuite({
    kind: 'kubernetes',
    provider: () => bench.provider(),
    image: baseImage,
    declines: kubernetesDeclines,
    only: reducedCases(),
    leftovers: () => Promise.resolve(bench.leftovers()),
  });
} else test('environment conformance: kubernetes', { skip: reason }, () => undefined);
