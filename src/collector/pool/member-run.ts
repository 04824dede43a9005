/**
 * One attempt at one place of a group: it waits at the gate, runs, and has one end. Whoever waits for the end never waits without limit once it was told to
 * stop: a port that does not settle then is abandoned, and what it says later is dropped.
 */
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Clock } from '../../core/clock.ts';
import type { MemberEnd, MemberRequest } from '../member.ts';
import type { RolloutPort } from '../rollout-port.ts';
import type { RolloutGate } from './rollout-gate.ts';

export interface MemberRunParts {
  readonly gate: RolloutGate;
  readonly port: RolloutPort;
  readonly clock: Clock;
  /** How long the port has to settle once it was told to stop. */
  readonly settleMs: number;
  readonly onStarted: (request: MemberRequest) => void;
  /** The port settled after it was abandoned. */
  readonly onLate: (request: MemberRequest) => void;
}

export type MemberRunState = 'waiting' | 'running' | 'turned-away' | 'ended' | 'abandoned';

export class MemberRun {
  readonly request: MemberRequest;
  /** null = the gate was closed before it had a place. */
  readonly ended: Promise<MemberEnd | null>;
  readonly #parts: MemberRunParts;
  readonly #life = new LinkedAbort([]);
  readonly #abandoned = Promise.withResolvers<MemberEnd>();
  #state: MemberRunState = 'waiting';
  #isCutOff = false;
  #startedMs = 0;
  #endedMs = 0;

  constructor(request: MemberRequest, parts: MemberRunParts) {
    this.request = request;
    this.#parts = parts;
    this.ended = this.#run();
  }

  get state(): MemberRunState {
    return this.#state;
  }

  /** It ended, but not by itself. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** By the clock's monotonic time; 0 = not yet. */
  get endedMs(): number {
    return this.#endedMs;
  }

  /** From its place at the gate to its end, or until now. */
  get durationMs(): number {
    if (this.#startedMs === 0) return 0;
    const until = this.#endedMs === 0 ? this.#parts.clock.monotonicMs() : this.#endedMs;
    return until - this.#startedMs;
  }

  /** Tells the port, and abandons it when it does not settle; one that waits for its place is turned away. Idempotent. */
  stop(reason: Error): void {
    const isOver = this.#state !== 'running' && this.#state !== 'waiting';
    if (this.#life.signal.aborted || isOver) return;
    this.#life.abort(reason);
    const { clock, settleMs } = this.#parts;
    const link = new LinkedAbort([]);
    const over = (): void => link.abort(new Error('it settled'));
    this.ended.then(over, over);
    clock.sleep(settleMs, link.signal).then(
      () => this.#abandon(reason),
      () => undefined, // it settled first
    );
  }

  #abandon(reason: Error): void {
    if (this.#state !== 'running') return;
    this.#state = 'abandoned';
    this.#abandoned.resolve(cutOff('abandoned', messageOf(reason)));
  }

  async #run(): Promise<MemberEnd | null> {
    const { gate, clock, onStarted } = this.#parts;
    if (!(await gate.enter(this.#life.signal))) {
      this.#state = 'turned-away';
      this.#endedMs = clock.monotonicMs();
      return null;
    }
    this.#state = 'running';
    this.#startedMs = clock.monotonicMs();
    onStarted(this.request);
    try {
      return await Promise.race([this.#settled(), this.#abandoned.promise]);
    } finally {
      this.#endedMs = clock.monotonicMs();
      gate.leave();
    }
  }

  async #settled(): Promise<MemberEnd> {
    const { port, onLate } = this.#parts;
    const end = await ranTo(port, this.request, this.#life.signal);
    this.#isCutOff = end.status === 'aborted' || end.fault === 'cancelled';
    if (this.#state === 'running') this.#state = 'ended';
    else onLate(this.request);
    return end;
  }
}

/** A port that rejects has a defect, or was stopped: either way this member is lost and no other. */
async function ranTo(
  port: RolloutPort,
  request: MemberRequest,
  signal: AbortSignal,
): Promise<MemberEnd> {
  try {
    return await port.run(request, signal);
  } catch (error) {
    if (signal.aborted) return cutOff('stopped', messageOf(error));
    return {
      ...{ status: 'failed', fault: 'infrastructure', isRetryable: true, reward: null },
      cause: error instanceof RolloutError ? error.code : 'INTERNAL',
      message: messageOf(error),
      ...{ samples: [], metadata: {} },
    };
  }
}

function cutOff(cause: string, message: string): MemberEnd {
  return {
    ...{ status: 'aborted', fault: 'cancelled', cause, message, isRetryable: true, reward: null },
    ...{ samples: [], metadata: {} },
  };
}
