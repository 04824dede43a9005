/** Must show: a server that holds against whoever has one of its keys, or none; keys that die at once; secrets that are nowhere. With its control. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { lookFromInside } from '../chaos/security/sandboxed-server.ts';
import { attackServer } from '../chaos/security/suite.ts';

const attempts = Number(process.env['ATTEMPTS'] ?? '1000');
const held = Number(process.env['HELD'] ?? '24');
const refusalLimitMs = 100;
let isFailed = false;
let since = performance.now();

console.log(`${held} rollouts live, ${attempts} attempts with the key of one toward another`);
const report = await attackServer({
  ...{ held, attempts, hosts: ['0.0.0.0', '::', '::ffff:0.0.0.0'] },
  onCheck({ name, detail, problems }) {
    const seconds = ((performance.now() - since) / 1000).toFixed(1);
    since = performance.now();
    console.log(`  ${problems.length === 0 ? 'held' : 'BROKEN'}: ${name} ${detail} (${seconds} s)`);
    for (const problem of problems) console.log(`    PROBLEM ${problem}`);
    if (problems.length > 0) isFailed = true;
  },
});
const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-inside-'));
const inside = await lookFromInside(root).finally(() => rmSync(root, { recursive: true }));
console.log(
  `from inside a sandbox: ${inside.dumpBytes} bytes of everything that names itself, the control server answers ${inside.controlAnswer ?? 'nothing'}`,
);
for (const problem of inside.problems) console.log(`    PROBLEM ${problem}`);
if (inside.problems.length > 0) isFailed = true;
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
