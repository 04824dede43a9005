/**
 * Must show: real Claude Code and Codex, in a sandbox behind the gateway on a scripted model whose ids are known, whose history is compacted by their own
 * setting; the calls become samples that are complete and valid, by the commands. Names of agents pick some; with `--save` what the programs asked becomes the
 * fixture from which `npm test` makes the same labels.
 */
import { compactions, runCompaction } from '../integration/clis/compaction.ts';
import { saveCompaction } from '../integration/clis/compaction-fixtures.ts';

const asked = process.argv.slice(2).filter((name) => !name.startsWith('-'));
const wanted = compactions.filter(
  ({ trial: { agent } }) => asked.length === 0 || asked.includes(agent),
);
if (wanted.length === 0) {
  console.error(
    `nothing is left to show: agents are ${compactions.map(({ trial }) => trial.agent).join(', ')}`,
  );
  process.exit(2);
}
let failed = 0;
for (const one of wanted) {
  const { agent } = one.trial;
  try {
    const made = await runCompaction(one);
    const { calls, samples, audited } = made;
    if (process.argv.includes('--save')) await saveCompaction(agent, made.captured);
    const edges = calls.map(({ label, reason }) =>
      reason === null ? label : `${label} ${reason}`,
    );
    const said = audited.slice(audited.indexOf(': ') + 2);
    console.log(`shown  ${agent}: ${edges.join(', ')}; ${samples.length} samples; audit: ${said}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${agent}`);
    console.log(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}
process.exitCode = failed === 0 ? 0 : 1;
