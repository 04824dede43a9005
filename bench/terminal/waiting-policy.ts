/** Solves the trivial task in its first turn, then mostly waits, as agents do while a build runs: what a trial costs while its sandbox is idle. */
import type { Policy } from '../../src/engines/mock/policy.ts';

const waitingTurns = 12;
const waitSec = 6;

const policy: Policy = ({ turn }) => {
  const isFirst = turn === 0;
  const isDone = turn > waitingTurns;
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
