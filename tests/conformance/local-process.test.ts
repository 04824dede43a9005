/** Plain processes pass what needs no isolation; every case that does is listed as declined. */
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, test } from 'node:test';
import { baseImage, LocalBench, whyNoProot } from '../environments/local/local-bench.ts';
import { environmentSuite } from './environment-suite.ts';
import { reducedCases } from './reduced-cases.ts';

const reason = whyNoProot();
if (reason === null) {
  // Every sandbox is a copy of the image: in memory, where there is such a place, they are made and removed in time.
  const isInMemory = existsSync('/dev/shm');
  const bench = new LocalBench(isInMemory ? '/dev/shm' : tmpdir());
  after(() => bench[Symbol.dispose]());
  environmentSuite({
    kind: 'local',
    provider: () => bench.provider({ runtime: 'process', isUnsandboxedAllowed: true }),
    image: baseImage,
    only: reducedCases(),
    specDefaults: { network: { mode: 'public' } },
    declines: [
      ...[
        'compose',
        'gpus',
        'tpus',
        'windows',
        'cpuLimit',
        'memoryLimit',
        'pidsLimit',
        'diskQuota',
      ],
      ...[
        'users',
        'noNetwork',
        'allowlist',
        'dynamicNetworkPolicy',
        'hostEndpoint',
        'image.user',
        'layers',
      ],
      // Whoever runs Slipway is whom the processes are.
      ...['isolation.capabilities', 'isolation.host-processes', 'isolation.siblings'],
      // Paths are rewritten to paths of the host, with the same bound: whether the last file still fits depends on the state folder.
      ...(isInMemory ? [] : ['destroy.deep-tree']),
    ],
    leftovers: () => Promise.resolve(bench.leftovers()),
  });
} else test('environment conformance: local plain processes', { skip: reason }, () => undefined);
