/**
 * Must show: keys of rollouts reach no other rollout, in any dialect and from any place of a request; the key of the upstream is nowhere that a trial can see it; an
 * upstream that redirects or lies leaks nothing. With its control.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { lookFromInside } from '../chaos/security/sandboxed-server.ts';
import { trickCount } from '../chaos/security/key-tricks.ts';
import { crossAll } from '../gateway/isolation/crossed-keys.ts';
import { hearLies, lies } from '../gateway/isolation/lying-upstreams.ts';

const wanted = Number(process.env['ATTEMPTS'] ?? '1000');
const rollouts = 32;
/** Some of the tricks have a right key and come to their own model. */
const attempts = Math.ceil(wanted * 1.25);

function report(isRight: boolean, what: string, problems: readonly string[] = []): void {
  console.log(`${isRight ? 'held' : 'BROKEN'}: ${what}`);
  for (const problem of problems.slice(0, 10)) console.log(`    PROBLEM ${problem}`);
  if (problems.length > 10) console.log(`    and ${problems.length - 10} more`);
  if (!isRight) process.exitCode = 1;
}

console.log(`${rollouts} rollouts, ${attempts} attempts, ${trickCount} tricks`);
const { refused, ownRoute, problems, dead } = await crossAll({ rollouts, attempts });
report(
  problems.length === 0 && refused >= wanted,
  `${refused} of at least ${wanted} attempts refused without a word to an upstream, ${ownRoute} came to their own model`,
  problems,
);
report(
  dead.problems.length === 0 && dead.ownRoute === 0,
  `keys of rollouts that ended, and keys that were replaced: ${dead.refused} attempts refused`,
  dead.problems,
);
const mixed = await crossAll({ rollouts, attempts: trickCount, swaps: true });
report(
  mixed.problems.length > 0,
  `control, keys that were mixed up: ${mixed.problems.length} found`,
);

const key = 'sk-upstream-5f1c9a7e2b7d4410';
const lied = await hearLies(key);
report(
  lied.problems.length === 0,
  `${Object.keys(lies).length} upstreams that redirect, lie or break off: ${lied.answers} answers without their key, no redirection was followed`,
  lied.problems,
);

console.log(
  'a trial in a sandbox prints its variables, its files and those of every process that it sees',
);
const root = mkdtempSync(path.join(os.tmpdir(), 'slipway-isolation-'));
const inside = await lookFromInside(root).finally(() => rmSync(root, { recursive: true }));
report(
  inside.problems.length === 0 && inside.dumpBytes > 0,
  `${inside.dumpBytes} bytes from inside, and all files of the server but its store, without a key of the server, the controller or the upstream`,
  inside.problems,
);
console.log(process.exitCode === 1 ? 'FAILED' : 'the rollouts are isolated');
