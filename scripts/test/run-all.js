/** All checks and tests, one after the other, with one tally at the end. Runs on Slipway's Node. */
import { checks, runCheck } from './checks.js';
import { runTestFiles } from './run-test-files.js';
import { selectTestFiles } from './select-test-files.js';
import { addTally, emptyTally } from './tally.js';

const argv = process.argv.slice(2);
const isVerbose = argv.includes('--verbose');
const patterns = argv.filter((argument) => !argument.startsWith('--'));
const isStrict = /^(1|true)$/.test(process.env['CI'] ?? '');

async function main() {
  const startedAt = Date.now();
  let tally = emptyTally;
  const named = checks.filter((check) => patterns.length === 0 || patterns.includes(check.name));
  for (const each of await Promise.all(named.map(runCheck))) tally = addTally(tally, each);

  const others = patterns.filter((pattern) => !checks.some((check) => check.name === pattern));
  const groups = patterns.length > 0 && others.length === 0 ? [] : selectTestFiles(others);
  for (const group of groups) tally = addTally(tally, await runTestFiles(group, { isVerbose }));

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
