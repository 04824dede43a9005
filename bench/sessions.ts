/**
 * `npm run bench -- sessions`: what a turn costs at 10, 100, 128 and 1,000 turns of 500 tokens, over encoding the history again; bytes per stored token; the
 * assembly of a session of 10,000 turns; and the memory of 1,024 sessions of 50 turns and 32k tokens. Each is a process of its own.
 */
import path from 'node:path';
import { report, reportWhenLate, type Figure, type Goal } from './report.ts';
import { runPart } from './server/processes.ts';
import type { MemoryResult } from './sessions/memory.ts';
import type { TurnsResult } from './sessions/turns.ts';
import { sized } from './size.ts';

const part = (name: string): string => path.join(import.meta.dirname, 'sessions', `${name}.ts`);
const mebibyte = 1024 ** 2;
const sessions = sized(1_024, 256);
const inWords = sessions.toLocaleString('en-US');

const figures: Figure[] = [];
const goals: Goal[] = [];
reportWhenLate('sessions', () => ({ figures, goals }));

const turns = await runPart<TurnsResult>(part('turns'), { at: [10, 100, 128, 1000] });
const costAt = (count: number): number => turns.turnMs[String(count)] ?? Number.NaN;
const againAt = (count: number): number => turns.againMs[String(count)] ?? Number.NaN;
const ratio = againAt(128) / costAt(128);
figures.push(
  ...[10, 100, 1000].flatMap((count) => [
    { name: `a turn at ${count} turns`, value: costAt(count), unit: 'ms' },
    { name: `the history again at ${count} turns`, value: againAt(count), unit: 'ms' },
  ]),
);
goals.push(
  {
    name: 'a turn at 1,000 turns, over one at 10',
    ...{ measured: costAt(1000) / costAt(10), limit: 2, direction: 'at most', unit: 'times' },
  },
  {
    name: 'the history again, over a turn, at 128 turns',
    ...{ measured: ratio, limit: 20, direction: 'at least', unit: 'times' },
  },
);

const stored = await runPart<MemoryResult>(part('memory'), {
  ...{ sessions: 1, turns: 2_000, tokensPerTurn: 500, maxBytes: null },
});
const many = await runPart<MemoryResult>(part('memory'), {
  ...{ sessions, turns: 50, tokensPerTurn: 640, maxBytes: sized(128, 32) * mebibyte },
});
const long = await runPart<MemoryResult>(part('memory'), {
  ...{ sessions: 1, turns: 10_000, tokensPerTurn: 60, maxBytes: null },
});

figures.push(
  { name: `tokens of the ${inWords} sessions`, value: many.tokens / 1e6, unit: 'million' },
  { name: 'building them', value: many.buildMs / 1_000, unit: 's' },
  { name: 'of them on disk', value: many.spilledBytes / mebibyte, unit: 'MiB' },
  {
    name: 'bytes of numbers per stored token',
    value: stored.numberBytes / stored.tokens,
    unit: 'B',
  },
);
goals.push(
  {
    name: 'memory per stored token',
    ...{ measured: stored.heldBytes / stored.tokens, limit: 12.5, direction: 'at most', unit: 'B' },
  },
  {
    name: 'assembly of 10,000 turns',
    ...{ measured: long.assemblyMs / 1_000, limit: 1, direction: 'at most', unit: 's' },
  },
  {
    name: `resident with ${inWords} sessions of 50 turns and 32k tokens`,
    ...{ measured: many.peakBytes / mebibyte, limit: 1024, direction: 'at most', unit: 'MiB' },
  },
);
report('sessions', { figures, goals });
