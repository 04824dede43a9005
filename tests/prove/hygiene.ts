/** Must show: no machine path and no registry host in the tree; lint proves the import table on planted violations. */
import { run, runTestFiles } from './run-test-files.ts';

await runTestFiles('tests/hygiene.test.ts', 'tests/scripts/layers.test.ts');
await run('npm', ['run', '--silent', 'lint']);
