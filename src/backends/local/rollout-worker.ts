/** What carries out the orders of rollouts, one at a time: a thread for TypeScript, a process for Python. */
import type { ThreadOrder, ThreadReport } from './thread-messages.ts';

/** What ended a worker that nobody ended. `isForeign`: the user's code did not do it. */
export class WorkerEnded extends Error {
  override readonly name = 'WorkerEnded';
  readonly isForeign: boolean;

  constructor(message: string, isForeign = false) {
    super(message);
    this.isForeign = isForeign;
  }
}

export interface RolloutWorker {
  /** Resolves when the user's code is loaded. WORKFLOW_INVALID and WORKFLOW_PACKAGE_MISSING say why it is not, RUNNER_FAILED that the machine would not. */
  readonly ready: Promise<void>;
  readonly isGone: boolean;
  /** What the code prints goes there until the next call. */
  onPrint: ((text: string) => void) | null;
  /** Rejects with WorkerEnded when the worker ends first. */
  carryOut(order: ThreadOrder): Promise<ThreadReport>;
  /** Tells the code of the order that runs to stop. */
  cancel(reason: string): void;
  /** Resolves when the worker is gone, a busy loop in it or not. Idempotent. */
  terminate(): Promise<void>;
}

/** How workers of one kind are made. */
export interface WorkerKind {
  /** For people. */
  readonly noun: 'thread' | 'process';
  /** `onGone` is called once, when the worker has ended. */
  make(onGone: () => void): RolloutWorker;
}
