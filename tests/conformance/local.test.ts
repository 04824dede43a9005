import { after, test } from 'node:test';
import { baseImage, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import { environmentSuite } from './environment-suite.ts';

const reason = whyNoRunc();
if (reason === null) {
  const bench = new LocalBench();
  after(() => bench[Symbol.dispose]());
  environmentSuite({
    kind: 'local',
    provider: () => bench.provider({ runtime: 'runc' }),
    image: baseImage,
    declines: ['compose', 'gpus', 'tpus', 'windows'],
    leftovers: () => Promise.resolve(bench.leftovers()),
  });
} else test('environment conformance: local', { skip: reason }, () => undefined);
