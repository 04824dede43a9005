/** Must show: the quickstart of the rollout server in both environments: 6 tasks × 4 rollouts through `/rollout` to callbacks, rewards as the script says. */
import { run, runTestFiles } from './run-test-files.ts';

await run('npm', ['run', 'quickstart', '--', '--show', 'server']);
await run('npm', ['run', 'quickstart', '--', '--show', 'server', '--env', 'docker']);
// The controls: a wrong reward, a lost and a repeated result are found.
await runTestFiles('tests/scripts/server-quickstart.test.ts');
