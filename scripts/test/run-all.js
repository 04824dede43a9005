/** All checks and tests, with one tally at the end. Runs on Slipway's Node. */
import { availableParallelism } from 'node:os';
import { checks, runCheck } from './checks.js';
import { inLanes } from './lanes.js';
import { Reporter } from './reporter.js';
import { runTestFile } from './run-test-file.js';
import { selectTestFiles } from './select-test-files.js';
import { addTally, emptyTally } from './tally.js';

const argv = process.argv.slice(2);
const isVerbose = argv.includes('--verbose');
const patterns = argv.filter((argument) => !argument.startsWith('--'));
const isStrict = /^(1|true)$/.test(process.env['CI'] ?? '');
const nothing = { measuring: [], alone: [], engine: [], paired: [], plain: [] };

async function main() {
  const startedAt = Date.now();
  let tally = emptyTally;
  /** @type {string[]} */
  const failedChecks = [];
  const checking = checks
    .filter((check) => patterns.length === 0 || patterns.includes(check.name))
    .map((check) => async () => {
      const ofCheck = await runCheck(check);
      if (ofCheck.failed > 0) failedChecks.push(`✖ ${check.name}`);
      tally = addTally(tally, ofCheck);
    });
  const others = patterns.filter((pattern) => !checks.some((check) => check.name === pattern));
  const plan = patterns.length > 0 && others.length === 0 ? nothing : selectTestFiles(others);
  const reporter = new Reporter({ isVerbose, print: (line) => console.log(line) });
  const testing = (/** @type {readonly string[]} */ files) =>
    files.map((file) => () => runTestFile(file, reporter));

  const besides = async () => {
    await inLanes(testing(plan.plain), availableParallelism());
    await inLanes(testing(plan.paired), 2);
  };
  await Promise.all([inLanes(testing(plan.engine), 1), besides()]);
  // The checks make no sandboxes, and what is alone waits much of its time.
  await Promise.all([inLanes(testing(plan.alone), 1), inLanes(checking, 1)]);
  await inLanes(testing(plan.measuring), 1);
  tally = addTally(tally, reporter.finish());

  const failures = [...failedChecks, ...reporter.failures];
  if (failures.length > 0) console.log(['', 'Failed:', ...failures].join('\n'));
  console.log(`\n${Math.round((Date.now() - startedAt) / 1000)} s in all`);
  if (tally.passed + tally.failed + tally.skipped === 0) {
    console.error(`Nothing matches ${patterns.join(' ')}.`);
    return 1;
  }
  if (isStrict && tally.skipped > 0) {
    console.log(`CI is set: ${tally.skipped} skipped tests count as failures`);
    tally = { ...tally, failed: tally.failed + tally.skipped };
  }
  console.log(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`);
  return tally.failed === 0 ? 0 : 1;
}

process.exitCode = await main();
