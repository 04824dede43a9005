import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { namedTasks } from '../../../src/app/preflight/named-tasks.ts';
import { trialSettings } from '../../../src/app/preflight/trial-settings.ts';
import { readMachine } from '../../../src/config/machine.ts';
import { compileServeConfig } from '../../../src/config/serve/read-serve-config.ts';
import { RolloutError } from '../../../src/core/errors.ts';

const backends = {
  native: { kind: 'native', native: { agent: 'oracle', prewarm: ['./own'] } },
  harbor: { kind: 'harbor', harbor: { agent: 'oracle', tasks_dir: './own' } },
} as const;

describe('where the folders of tasks begin that preflight looks at', () => {
  for (const [kind, backend] of Object.entries(backends))
    for (const file of ['/etc/slipway/slipway.toml', null])
      it(`with ${kind} ${file === null ? 'without' : 'and'} a file`, async () => {
        const machine = readMachine({ HOME: '/root' }, '/here');
        const config = compileServeConfig({ flags: {}, document: { backend }, file }, machine);
        const settings = trialSettings(config);
        assert.ok(settings !== null);
        const references = ['./flag', '../flag', '/flag', '{"harbor_task":"./row"}'];
        const named = await namedTasks({ references, datasetFile: null, cwd: '/here' }, settings);
        const paths = named.map(({ entry }) =>
          entry instanceof RolloutError ? entry.code : entry.path,
        );
        const base = file === null ? '/here' : '/etc/slipway';
        assert.deepEqual(paths, ['/here/flag', '/flag', `${base}/row`, `${base}/own`]);
      });
});
