/**
 * Solves the trivial task in its first turn, then waits, as agents do while a build runs: what a trial costs while its sandbox is idle. Trials end by
 * chance one after the other, as they do when their tasks differ.
 */
import type { Policy } from '../../src/engines/mock/policy.ts';

const leastTurns = 13;
const mostTurns = 22;
const endChance = 0.25;
const waitSec = 6;

const policy: Policy = ({ turn, messages, random }) => {
  const isFirst = turn === 0;
  const last = messages.findLast(({ role }) => role === 'assistant');
  const hasSaidSo = JSON.stringify(last?.content ?? '').includes('"task_complete\\":true');
  const mayEnd = turn >= leastTurns && random() < endChance;
  const isDone = hasSaidSo || mayEnd || turn >= mostTurns;
  return {
    content: JSON.stringify({
      analysis: `This is turn ${turn}.`,
      plan: isDone ? 'Finish.' : 'Wait.',
      commands: isDone
        ? []
        : [
            isFirst
              ? { keystrokes: 'echo done > /done\n', duration: 1 }
              : { keystrokes: '', duration: waitSec },
          ],
      task_complete: isDone,
    }),
  };
};

export default policy;
