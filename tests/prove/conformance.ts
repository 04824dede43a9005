/** Must show: the environment conformance suite and its list of cases for fake, local with runc, and docker. */
import { runTestFiles } from './run-test-files.ts';

await runTestFiles(
  'tests/conformance/fake.test.ts',
  'tests/conformance/local.test.ts',
  'tests/conformance/docker.test.ts',
);
