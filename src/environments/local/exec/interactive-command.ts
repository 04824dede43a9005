/**
 * A command that stays open. Besides the exit code its waiting shell also says over descriptor 3 that the command begins, so that a command
 * that cannot be started is told from one that ends at once.
 */
import type { ProcessRequest } from '../../environment.ts';
import { AttachedProcess, startLimit } from '../../shared/attached-process.ts';
import { HeldOutput } from '../../shared/held-output.ts';
import type { HostScan } from '../processes/host-scan.ts';
import type { SandboxCommand } from '../runtime/runtime.ts';
import { killCommand, notStarted, settleOutput, watchEnd } from './exec.ts';

interface RunningCommand {
  readonly running: SandboxCommand;
  readonly isAlive: () => boolean;
  readonly scan: HostScan;
  readonly startMs?: number;
}

/** Resolves when the command runs; see `Environment.openProcess` for the contract. */
export async function openCommand(
  { running, isAlive, scan, startMs }: RunningCommand,
  request: Pick<ProcessRequest, 'onOutput'>,
  signal: AbortSignal,
): Promise<AttachedProcess> {
  const { stdin } = running;
  if (stdin === null) throw new Error('an interactive command is started with an input');
  const output = new HeldOutput(request.onOutput);
  for (const stream of ['stdout', 'stderr'] as const) {
    running[stream].on('data', (bytes: Buffer) => output.write(stream, bytes));
    running[stream].on('error', () => undefined);
  }
  const closed = new Promise<void>((resolve) => {
    running.child.once('close', () => resolve());
    running.child.once('error', () => resolve());
  });
  const status = new StatusLines(running);
  stdin.on('error', () => undefined);
  using limit = startLimit(signal, startMs);
  const onAbort = (): void => status.giveUp();
  limit.signal.addEventListener('abort', onAbort, { once: true });
  if (limit.signal.aborted) onAbort();
  const hasBegun = await status.begun;
  if (limit.signal.aborted) {
    await killCommand(running, scan);
    throw limit.signal.reason;
  }
  if (!hasBegun) {
    await settleOutput(closed, [output]);
    await killCommand(running, scan);
    throw notStarted(output.text(), isAlive());
  }
  output.release();
  const finish = async (): Promise<number | null> => {
    const exitCode = await status.exitCode;
    await settleOutput(closed, [output]);
    output.ignoreRest();
    return isAlive() ? exitCode : null;
  };
  return new AttachedProcess(
    { stdin, ended: finish(), kill: () => killCommand(running, scan) },
    signal,
  );
}

/** What the waiting shell says: a line when the command begins, one with its exit code. */
class StatusLines {
  readonly begun: Promise<boolean>;
  /** null when it never came. */
  readonly exitCode: Promise<number | null>;
  readonly #begun = Promise.withResolvers<boolean>();
  readonly #exitCode = Promise.withResolvers<number | null>();
  #text = '';

  constructor(running: SandboxCommand) {
    this.begun = this.#begun.promise;
    this.exitCode = this.#exitCode.promise;
    running.status.on('data', (chunk: Buffer) => this.#read(chunk));
    const stopWatching = watchEnd(running, () => this.giveUp());
    void this.exitCode.then(stopWatching);
  }

  giveUp(): void {
    this.#begun.resolve(false);
    this.#exitCode.resolve(null);
  }

  #read(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString('latin1')).slice(0, 32);
    const [begun, code, rest] = this.#text.split('\n');
    if (code === undefined) return;
    this.#begun.resolve(begun === 'begun');
    if (rest !== undefined) this.#exitCode.resolve(Number.parseInt(code, 10));
  }
}
