import { RolloutError } from '../../core/errors.ts';
import { asRoot } from '../sandbox-folders.ts';
import { quote } from '../shell-quote.ts';
import type { Stage } from '../stage.ts';

/** Brings the skills of the run into the sandbox, each into an emptied folder, readable for every user. */
export const bringSkills: Stage = {
  name: 'bringing skills',
  phase: 'agent-setup',
  applies: (run) => run.plan.skills.length > 0,
  async run({ plan, environment, deadline, record }, signal) {
    const { skills, skillsDir } = plan;
    if (skillsDir === null) return;
    const bring = async (limited: AbortSignal): Promise<void> => {
      for (const skill of skills) {
        const target = `${skillsDir}/${skill.name}`;
        const quoted = quote(target);
        await asRoot(environment, `rm -rf ${quoted} && mkdir -p ${quoted}`, limited);
        await environment.uploadDir(skill.dir, target, limited);
        await asRoot(environment, `chmod -R a+rX ${quoted}`, limited);
      }
    };
    await record.timed('skills_ms', () =>
      deadline.child('start').within('skills', { signal, expired, work: bring }),
    );
  },
};

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'TRANSFER_FAILED',
    `the skills were not in the sandbox after ${limitMs / 1000} s`,
    { phase: 'agent-setup', field: 'agent.skills', remedy: 'Use fewer or smaller skills.' },
  );
}
