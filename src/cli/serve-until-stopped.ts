/** The life of a server in this process: the first signal ends it in stages, the second one at once; a part without which nothing goes on ends it too. */
import { collectEarly } from '../app/serve/early-collection.ts';
import { takePrecedence } from '../app/serve/processor-share.ts';
import type { CommandScope } from './command-scope.ts';
import { exitCodes } from './exit-codes.ts';
import { ServerSignals } from './server-signals.ts';

export interface Serving {
  /** Resolves when a part has ended by itself without which nothing can go on. */
  readonly lost: Promise<Error>;
  /** Idempotent: later calls share the first one's end. */
  stop(hurry: AbortSignal): Promise<void>;
}

/** `ready` is printed when it serves. */
export async function serveUntilStopped<Server extends Serving>(
  scope: Pick<CommandScope, 'terminal' | 'releaseInterrupts'>,
  start: (signals: ServerSignals) => Promise<Server>,
  ready: (server: Server) => string,
): Promise<number> {
  // The process is ours from here on: the first signal asks for an end in stages, not for a cancellation.
  scope.releaseInterrupts();
  const { terminal } = scope;
  using ours = new DisposableStack();
  const signals = ours.use(new ServerSignals(terminal));
  ours.use(takePrecedence());
  collectEarly();
  const server = await start(signals);
  try {
    terminal.out(ready(server));
    const lost = await Promise.race([server.lost, signals.stopped]);
    if (lost !== null) {
      // Nothing that runs can finish.
      await server.stop(AbortSignal.abort(lost));
      throw lost;
    }
  } finally {
    await server.stop(signals.hurry);
  }
  return exitCodes.ok;
}
