/** The process of a backend that says, as it is asked to abort something, which share of the processor it has. */
import { readFileSync } from 'node:fs';
import type {
  BackendAnswer,
  FromBackend,
  ToBackend,
} from '../../src/app/serve/backend-messages.ts';

const say = (message: FromBackend): void => void process.send?.(message);
const facts = {
  ...{ kind: 'sharing', capturesFinalResult: false, health: { pid: process.pid } },
  ...{ canProbe: false, canForget: false },
};

process.on('message', (message: ToBackend) => {
  if (message.kind !== 'call') return;
  const { number, call } = message;
  const answer = (value: BackendAnswer): void => say({ kind: 'answer', number, value });
  if (call.name === 'start') answer(facts);
  else if (call.name === 'abort')
    answer({
      ...{ stage: readFileSync('/proc/self/autogroup', 'utf8'), processesKilled: 0 },
      ...{ confirmedGone: [], isComplete: true, problem: null },
    });
  else answer(null);
});
say({ kind: 'made', facts });
