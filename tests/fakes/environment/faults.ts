import type { RolloutError } from '../../../src/core/errors.ts';

export type FaultPoint =
  | 'start'
  /** The sandbox exists, then start fails or hangs: between "create sent" and "answer known". */
  | 'after-create'
  | 'exec'
  | 'upload'
  | 'download'
  | 'snapshot'
  | 'kill'
  | 'destroy'
  | 'list';

export interface Fault {
  readonly at: FaultPoint;
  /** What happens: reject with this error, wait for the call's signal, or lose the sandbox first. */
  readonly does: RolloutError | 'hang' | 'lose-sandbox';
  /** How many times; absent = always. */
  readonly times?: number;
  /** Only where this answers true for what the call is about: the command of an exec, the paths of a copy, else the sandbox's name. */
  readonly when?: (subject: string) => boolean;
}

/** Faults that a test plants in a fake machine. */
export class Faults {
  readonly #planted: { readonly fault: Fault; left: number }[] = [];

  plant(fault: Fault): void {
    this.#planted.push({ fault, left: fault.times ?? Infinity });
  }

  clear(): void {
    this.#planted.length = 0;
  }

  /** Lets the fault that fits happen: rejects, or hangs until the signal fires. Resolves when there is none. */
  async strike(
    at: FaultPoint,
    subject: string,
    { signal, lose }: { readonly signal: AbortSignal; readonly lose: () => void },
  ): Promise<void> {
    const planted = this.#planted.find(
      ({ fault, left }) => left > 0 && fault.at === at && (fault.when?.(subject) ?? true),
    );
    if (planted === undefined) return;
    planted.left -= 1;
    const { does } = planted.fault;
    if (does === 'lose-sandbox') lose();
    else if (does === 'hang') await untilAborted(signal);
    else throw does;
  }
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
}
