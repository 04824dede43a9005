/**
 * Must show: twenty rollouts on each backend, in each environment and with each kind of workflow and agent, over the server to the callbacks: every reward as promised, and
 * beside them one rollout that is ended and fails with its type while the others go on. `SECTION` picks by a part of the row, `ROLLOUTS` is their number.
 */
import { harborPeerRecord } from '../../scripts/setup/harbor-peer.js';
import { osmosisPeerRecord } from '../../scripts/setup/osmosis-peer.js';
import { agentSections } from '../chaos/backends/agent-sections.ts';
import { isGood, rowOf, tableOf } from '../chaos/backends/backend-section.ts';
import { agentInLocalSection, harborSections } from '../chaos/backends/harbor-section.ts';
import { nativeSections } from '../chaos/backends/native-section.ts';
import { localSection } from '../chaos/backends/python-local.ts';

const count = Number(process.env['ROLLOUTS'] ?? '20');
const only = process.env['SECTION'] ?? '';
const all = [...nativeSections, ...agentSections, ...harborSections, localSection];
const sections = [...all, agentInLocalSection].filter((section) =>
  `${section.backend} ${section.environment} ${section.works}`.includes(only),
);
console.log(`on ${await osmosisPeerRecord()} and ${await harborPeerRecord()}`);
const rows: (readonly string[])[] = [];
let isWrong = sections.length === 0;
for (const section of sections) {
  const report = await section.run(count).catch((error: unknown) => ({
    ...{ rollouts: count, right: 0, failing: 0, typed: 0 },
    problems: [String(error).slice(0, 600)],
  }));
  rows.push(rowOf(section, report));
  console.log(rows.at(-1)?.join(' | '));
  for (const problem of report.problems) console.log(`    PROBLEM ${problem}`);
  if (!isGood(report)) isWrong = true;
}
for (const line of tableOf(rows)) console.log(line);
if (isWrong) process.exitCode = 1;
