/** Must show: agent classes on the package `harbor` solve their tasks by the controller's model; a process that is killed ends its own rollout alone. */
import { harborPeerRecord } from '../../scripts/setup/harbor-peer.js';
import type { ControllerResult } from '../../src/callbacks/rollout-controller.ts';
import {
  answerYes,
  bindings,
  openHarborBench,
  reasonOf,
} from '../integration/harbor-agents/harbor-bench.ts';

const count = Number(process.env['ROLLOUTS'] ?? 20);
console.log(`on ${await harborPeerRecord()}`);

let isWrong = false;
for (const name of ['ChatAgent', 'InstalledAgent'] as const) {
  await using bench = await openHarborBench(name, answerYes);
  const ids = Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
  const results = await Promise.all(ids.map((id) => bench.rollOut(id)));
  tell(`${bindings[name]}, ${name}`, results, { solved: count });
}

let killed: string | null = null;
await using bench = await openHarborBench('ChatAgent', async (response, call) => {
  const { user } = JSON.parse(call.body.toString()) as { readonly user: string };
  killed ??= user;
  if (killed === user) process.kill(Number(user), 'SIGKILL');
  await answerYes(response, call);
});
const ids = Array.from({ length: count }, (_, index) => `killed-${index + 1}`);
const results = await Promise.all(ids.map((id) => bench.rollOut(id)));
tell('one process killed during its model call', results, { solved: count - 1 });
for (const result of results.filter(({ status }) => status !== 'success')) {
  const isTyped = /RUNNER_FAILED|killed from outside/.test(reasonOf(result));
  console.log(`${result.id}: ${isTyped ? '' : 'NOT '}told as the end of its process`);
  isWrong ||= !isTyped;
}
if (isWrong) process.exitCode = 1;

function tell(
  what: string,
  all: readonly ControllerResult[],
  { solved }: { readonly solved: number },
): void {
  const good = all.filter(({ status, reward }) => status === 'success' && reward === 1);
  console.log(`${what}: ${good.length} of ${all.length} solved, ${solved} expected`);
  if (good.length === solved) return;
  isWrong = true;
  for (const result of all.filter((one) => !good.includes(one)))
    console.log(`    ${result.id}: ${reasonOf(result).slice(0, 400)}`);
}
