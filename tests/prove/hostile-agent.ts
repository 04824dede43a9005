/** Must show: a hostile agent is dead within 2 s of cancelling, and never decides its reward; builds without cleaning or kill fail. */
import { runTestFiles } from './run-test-files.ts';

await runTestFiles('tests/trial/hostile-agent.test.ts');
