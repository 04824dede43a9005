/** Must show: the quickstart of agents in both environments: rewards as its script says, valid trajectories, every token the engine's own. */
import { run, runTestFiles } from './run-test-files.ts';

await run('npm', ['run', 'quickstart', '--', '--show', 'agents']);
await run('npm', ['run', 'quickstart', '--', '--show', 'agents', '--env', 'docker']);
// The controls: a lost, a repeated or a changed call and a wrong reward are found.
await runTestFiles('tests/scripts/quickstart.test.ts');
