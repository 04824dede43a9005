/**
 * Must show: branches of rollouts become correct samples. Synthetic agents whose every call is known append, ask again, edit, compact, delegate to four at once,
 * make asides and are intruded upon; parents, labels, leaves, masks, log-probabilities and weights equal the truth, in memory and from disk. With its controls.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { TokenBudget } from '../../src/sessions/token-budget.ts';
import { controls, findsIt } from '../sessions/broken-branches.ts';
import { judgeRollout } from '../sessions/judge-branches.ts';
import { actions, rewoundRollout, syntheticRollout } from '../sessions/synthetic-rollouts.ts';

const rollouts = Number(process.env['ROLLOUTS'] ?? '2000');
const steps = 24;

function report(isRight: boolean, what: string): void {
  console.log(`${isRight ? 'held' : 'BROKEN'}: ${what}`);
  if (!isRight) process.exitCode = 1;
}

const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-branches-'));
try {
  for (const [where, budget] of [
    ['in memory', null],
    ['on disk', new TokenBudget({ maxBytes: 4096, dir })],
  ] as const) {
    const sum = { calls: 0, samples: 0, trainedTokens: 0 };
    const done = new Set<string>();
    let problem = '';
    for (let seed = 1; seed <= rollouts && problem === ''; seed += 1) {
      try {
        const rollout = syntheticRollout(seed, steps);
        for (const action of rollout.done) done.add(action);
        const judged = judgeRollout(rollout, { budget });
        sum.calls += judged.calls;
        sum.samples += judged.samples;
        sum.trainedTokens += judged.trainedTokens;
      } catch (error) {
        problem = String(error);
      }
    }
    report(
      problem === '' && done.size === actions.length,
      `${rollouts} rollouts ${where}, ${sum.calls} calls, ${sum.samples} samples, ${sum.trainedTokens} trained tokens ${problem}`,
    );
  }
  report(readdirSync(dir).length === 0, 'nothing is left on disk');
} finally {
  rmSync(dir, { recursive: true, force: true });
}

const rewound = judgeRollout(rewoundRollout(177));
report(rewound.samples === 2, `a compaction that rewinds 177 turns: ${rewound.samples} samples`);

for (const control of controls) {
  let found = 0;
  for (let seed = 1; seed <= 20; seed += 1) if (findsIt(control, seed)) found += 1;
  report(found > 0, `control, ${control.title}: found in ${found} of 20 rollouts`);
}
