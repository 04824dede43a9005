/** Must show: a server that holds against whoever has one of its keys, or none; keys that die at once; secrets that are nowhere. With its control. */
import { attackServer } from '../chaos/security/suite.ts';

const attempts = Number(process.env['ATTEMPTS'] ?? '1000');
const held = Number(process.env['HELD'] ?? '24');
const refusalLimitMs = 100;
let isFailed = false;
let since = performance.now();

console.log(`${held} rollouts live, ${attempts} attempts with the key of one toward another`);
const report = await attackServer({
  ...{ held, attempts },
  onCheck({ name, detail, problems }) {
    const seconds = ((performance.now() - since) / 1000).toFixed(1);
    since = performance.now();
    console.log(`  ${problems.length === 0 ? 'held' : 'BROKEN'}: ${name} ${detail} (${seconds} s)`);
    for (const problem of problems) console.log(`    PROBLEM ${problem}`);
    if (problems.length > 0) isFailed = true;
  },
});
const slowest = Math.max(...report.refusedAfterMs);
console.log(
  `keys of rollouts that ended were refused within ${slowest.toFixed(0)} ms, the limit is ${refusalLimitMs} ms`,
);
if (slowest > refusalLimitMs) isFailed = true;
for (const { name, isFound } of report.controls) {
  console.log(`control, ${name}: ${isFound ? 'found' : 'NOT FOUND'}`);
  if (!isFound) isFailed = true;
}
console.log(isFailed ? 'FAILED' : 'the server held');
if (isFailed) process.exitCode = 1;
