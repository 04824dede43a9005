/** Must show: what the native backend promises about tasks, configuration, bindings, endpoint and preparation, a line each. */
import { runTestFiles } from './run-test-files.ts';

const files = ['tasks', 'configuration', 'bindings', 'endpoint', 'backend'].map(
  (name) => `native-${name}`,
);
await runTestFiles(
  ...[...files, 'prewarm'].map((name) => `tests/backends/native/${name}.test.ts`),
  'tests/integration/native-prewarm.test.ts',
);
