import { messageOf, traceOf } from '../../core/errors.ts';

const send = process.send?.bind(process);

/** Throws when the message cannot be said. A server that has gone hears nothing, and its end is this process's. */
export function tellServer(message: unknown, told: () => void = () => undefined): void {
  if (send === undefined) throw new Error('this file is started by the server');
  send(message, undefined, undefined, told);
}

/** For the main file of a process that the server starts: it ends with the server and with a defect, which it tells by `crashed` before, and with nothing else. */
export function livesWithServer(crashed: (why: string, told: () => void) => void): void {
  // What a terminal sends goes to the server too, which says what is to be done.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => undefined);
  // Without a server nothing of this is anybody's: the next one removes what is left, and no key lives.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  // Whoever reads what it prints may go: that ends its output, and no rollout.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  process.on('uncaughtException', (error: unknown) => {
    process.stderr.write(`${traceOf(error)}\n`);
    crashed(messageOf(error), () => process.exit(1));
  });
}
