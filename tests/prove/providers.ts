/** Must show: the environment suite for each provider on the fake of its service, and 500 trials that keep to the limits of one. */
import { runTestFiles } from './run-test-files.ts';

process.env['SLIPWAY_WHOLE_CONFORMANCE'] = '1';
process.env['SLIPWAY_DEMAND_TRIALS'] = '500';
await runTestFiles(
  'tests/conformance/kubernetes.test.ts',
  'tests/conformance/daytona.test.ts',
  'tests/conformance/skypilot.test.ts',
  'tests/conformance/daytona-backend.test.ts',
  'tests/conformance/skypilot-backend.test.ts',
  'tests/environments/shared/provider-demand.test.ts',
);
