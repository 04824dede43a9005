/** The process of a backend whose end takes long, and that works all the while. */
import type {
  BackendAnswer,
  FromBackend,
  ToBackend,
} from '../../src/app/serve/backend-messages.ts';
import { pingsOfPatience } from './patience.ts';

const say = (message: FromBackend): void => void process.send?.(message);
const facts = { kind: 'patient', capturesFinalResult: false, health: {}, canProbe: false };
let pings = 0;
let closing = 0;

process.on('message', (message: ToBackend) => {
  if (message.kind !== 'call') return;
  const { number, call } = message;
  const answer = (value: BackendAnswer): void => say({ kind: 'answer', number, value });
  if (call.name === 'start') answer({ ...facts, canForget: false });
  else if (call.name === 'close') closing = number;
  else if (call.name === 'ping') {
    pings += 1;
    answer(null);
    if (pings === pingsOfPatience) say({ kind: 'answer', number: closing, value: null });
  }
});
say({ kind: 'made', facts: { ...facts, canForget: false } });
