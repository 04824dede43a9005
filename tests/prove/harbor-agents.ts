/** Must show: agent classes on the package `harbor` solve their tasks by the controller's model; one that is killed or refused ends its own rollout alone. */
import { harborPeerRecord } from '../../scripts/setup/harbor-peer.js';
import { agentSections } from '../chaos/backends/agent-sections.ts';
import { isGood, rowOf } from '../chaos/backends/backend-section.ts';

const count = Number(process.env['ROLLOUTS'] ?? '20');
console.log(`on ${await harborPeerRecord()}`);
for (const section of agentSections) {
  const report = await section.run(count);
  console.log(rowOf(section, report).join(' | '));
  for (const problem of report.problems) console.log(`    PROBLEM ${problem}`);
  if (!isGood(report)) process.exitCode = 1;
}
