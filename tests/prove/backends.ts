/** Must show: workflows and graders written for osmosis-ai run unchanged, twenty rollouts on each backend that runs them. SECTION picks by name. */
import { harborSections } from '../chaos/backends/harbor-section.ts';
import { localSection } from '../chaos/backends/python-local.ts';

const count = 20;
const only = process.env['SECTION'];
const sections = [localSection, ...harborSections].filter(
  ({ name }) => only === undefined || name.includes(only),
);
for (const section of sections) {
  const { right, problems } = await section.run(count);
  console.log(`${section.name}: ${right} of ${count} as specified`);
  for (const problem of problems) console.log(`    ${problem}`);
  if (right < count || problems.length > 0) process.exitCode = 1;
}
if (sections.length === 0) process.exitCode = 1;
