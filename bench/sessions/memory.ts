/** Builds sessions side by side, a turn of each after the other, and says what they hold; then assembles the samples of one. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ForestNode } from '../../src/sessions/forest-node.ts';
import { assembleSamples } from '../../src/sessions/samples/assemble.ts';
import { TokenBudget } from '../../src/sessions/token-budget.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import { SessionCalls } from './session-calls.ts';

export interface MemoryResult {
  readonly tokens: number;
  /** What the process holds more than before, in all. */
  readonly heldBytes: number;
  /** Of that, ids and log-probabilities alone. */
  readonly numberBytes: number;
  readonly spilledBytes: number;
  readonly peakBytes: number;
  readonly buildMs: number;
  readonly assemblyMs: number;
}

interface Task {
  readonly sessions: number;
  readonly turns: number;
  readonly tokensPerTurn: number;
  /** null = nothing goes to disk. */
  readonly maxBytes: number | null;
}

interface Session {
  readonly forest: TokenForest;
  readonly calls: SessionCalls;
  parent: ForestNode | null;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const task = JSON.parse(process.argv[2] ?? '') as Task;
const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-sessions-'));
try {
  const { maxBytes } = task;
  const budget = maxBytes === null ? null : new TokenBudget({ maxBytes, dir });
  const before = heldBytes();
  const sessions = Array.from({ length: task.sessions }, (_, at): Session => ({
    ...{ forest: new TokenForest({ budget }), calls: new SessionCalls(at + 1), parent: null },
  }));
  const half = task.tokensPerTurn / 2;
  const begin = performance.now();
  for (let turn = 1; turn <= task.turns; turn += 1)
    for (const session of sessions) {
      const { forest, calls, parent } = session;
      const call = calls.next({ text: `turn ${turn}`, ids: calls.ids(half) }, half);
      session.parent = forest.extend({ parent, trimmed: 0 }, call);
    }
  const buildMs = performance.now() - begin;
  const held = heldBytes() - before;
  const numbers = sessions.reduce((sum, { forest }) => sum + forest.residentBytes, 0);
  const spilledBytes = readdirSync(dir).reduce(
    (sum, name) => sum + statSync(path.join(dir, name)).size,
    0,
  );
  const assembled = performance.now();
  const samples = sessions.slice(0, 1).flatMap(({ forest }) => assembleSamples(forest));
  const assemblyMs = performance.now() - assembled;
  const expected = task.turns * half;
  if (samples[0]?.trainedTokens !== expected) throw new Error('the sample is not whole');
  const result: MemoryResult = {
    tokens: task.sessions * task.turns * task.tokensPerTurn,
    ...{ heldBytes: held, numberBytes: numbers, spilledBytes, buildMs, assemblyMs },
    peakBytes: process.resourceUsage().maxRSS * 1024,
  };
  console.log(JSON.stringify(result));
} finally {
  rmSync(dir, { recursive: true, force: true });
}
