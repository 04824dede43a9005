/** Must show: the environment conformance suite and its list of cases for fake, local with runc and with plain processes, and docker. */
import { runTestFiles } from './run-test-files.ts';

process.env['SLIPWAY_WHOLE_CONFORMANCE'] = '1';
await runTestFiles(
  'tests/conformance/fake.test.ts',
  'tests/conformance/local.test.ts',
  'tests/conformance/local-process.test.ts',
  'tests/conformance/docker.test.ts',
);
