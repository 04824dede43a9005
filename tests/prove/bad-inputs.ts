/** Must show: bad inputs end in the documented code with field and remedy; siblings finish. */
import { runTestFiles } from './run-test-files.ts';

await runTestFiles('tests/cli/bad-inputs.test.ts');
