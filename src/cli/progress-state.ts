/** What a display knows about a running job; made from its events. */
import type { JobEvent, TrialSummary } from '../app/run-job.ts';

export interface RunningTrial {
  readonly name: string;
  readonly taskName: string;
  readonly stage: string;
  /** Milliseconds of the monotonic clock. */
  readonly since: number;
  /** Last line of a slow stage, such as a build. */
  readonly line: string | null;
}

export class ProgressState {
  readonly #running = new Map<string, RunningTrial>();
  total = 0;
  settled = 0;
  /** Of these, those of an earlier run: they say nothing about the pace of this one. */
  settledBefore = 0;
  failed = 0;
  /** Sum and number of the first reward channel, for a running mean. */
  #rewardSum = 0;
  #rewarded = 0;

  get running(): readonly RunningTrial[] {
    return [...this.#running.values()];
  }

  get meanReward(): number | null {
    return this.#rewarded === 0 ? null : this.#rewardSum / this.#rewarded;
  }

  accept(event: JobEvent, nowMs: number): void {
    if (event.type === 'job:started') {
      this.total = event.totalTrials;
      this.settled = event.finishedBefore;
      this.settledBefore = event.finishedBefore;
    } else if (event.type === 'trial:settled') this.#settle(event.summary);
    else if (event.type !== 'trial:ended') this.#change(event, nowMs);
  }

  #settle(summary: TrialSummary): void {
    this.#running.delete(summary.trialName);
    this.settled += 1;
    if (summary.failure !== null) this.failed += 1;
    const reward = Object.values(summary.rewards ?? {})[0];
    if (reward === undefined) return;
    this.#rewardSum += reward;
    this.#rewarded += 1;
  }

  #change(
    event: Exclude<JobEvent, { readonly type: 'job:started' | 'trial:settled' | 'trial:ended' }>,
    nowMs: number,
  ): void {
    const name = event.trialName;
    const known = this.#running.get(name);
    const taskName = event.type === 'trial:started' ? event.taskName : (known?.taskName ?? name);
    const enter = (stage: string): void =>
      void this.#running.set(name, { name, taskName, stage, since: nowMs, line: null });
    if (event.type === 'trial:started') enter('starting');
    else if (event.type === 'stage:started')
      enter(event.step === null ? event.stage : `${event.step}: ${event.stage}`);
    else if (event.type === 'stage:progress' && known !== undefined)
      this.#running.set(name, { ...known, line: event.line });
    else if (event.type === 'trial:retrying')
      enter(`waiting to retry (${event.summary.failure?.exceptionType ?? 'failed'})`);
  }
}
