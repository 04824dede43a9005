/**
 * Must show: real command line agents, pinned, each in a sandbox behind the gateway on a scripted model: every case of the table for every agent, a
 * generation that is silent for ten minutes among them. Names of agents pick some; SILENCE_SEC sets the silence; CASES picks by a part of the name; with `--save`
 * what the first case sends becomes the fixture of the version.
 */
import { rollOutOnce } from '../integration/clis/rolled-out.ts';
import { cliCases, cliSubjects, runCase, silentCase } from '../integration/clis/cli-cases.ts';

const asked = process.argv.slice(2).filter((name) => !name.startsWith('-'));
const saves = process.argv.includes('--save');
const silenceMs = Number(process.env['SILENCE_SEC'] ?? '600') * 1000;
const wanted = process.env['CASES'] ?? '';
const subjects = cliSubjects.filter(({ agent }) => asked.length === 0 || asked.includes(agent));
const rollout = { name: 'a rollout of a server', isRollout: true } as const;
const cases = [...cliCases, silentCase(silenceMs), rollout].filter(({ name }) =>
  name.includes(wanted),
);
if (subjects.length === 0 || cases.length === 0) {
  console.error(
    `nothing is left to show: agents are ${cliSubjects.map(({ agent }) => agent).join(', ')}`,
  );
  process.exit(2);
}
let failed = 0;
let shown = 0;
for (const subject of subjects)
  for (const one of cases) {
    if (subject.shell === null && 'needsTools' in one) continue;
    shown += 1;
    const since = performance.now();
    let problem = '';
    try {
      if ('isRollout' in one) await rollOutOnce(subject.agent);
      else await runCase(one, subject, { saves });
    } catch (error) {
      failed += 1;
      problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    const seconds = ((performance.now() - since) / 1000).toFixed(1).padStart(6);
    console.log(
      `${problem === '' ? 'shown ' : 'FAILED'} ${seconds} s  ${subject.agent}: ${one.name}`,
    );
    if (problem !== '') console.log(problem);
  }
console.log(`${shown - failed} of ${shown} cases shown`);
process.exitCode = failed === 0 ? 0 : 1;
