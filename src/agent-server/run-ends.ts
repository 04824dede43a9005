/** Ends of rollouts for those who wait for them: an observer of the scheduler, made before it. */
import type { RolloutNews, RolloutObserver } from '../scheduler/scheduler-parts.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';

export interface RunEnd {
  readonly outcome: RolloutOutcome;
  readonly diagnostics: Readonly<Record<string, unknown>> | null;
  /** Of the sample: tokens, costs. */
  readonly metrics: Readonly<Record<string, unknown>>;
  /** What the agent says of its run. */
  readonly agentMetadata: Readonly<Record<string, unknown>>;
}

export class RunEnds implements RolloutObserver {
  readonly #waiting = new Map<string, (end: RunEnd | null) => void>();

  /** Before it is submitted. null = the server ends first. */
  of(id: string): Promise<RunEnd | null> {
    const { promise, resolve } = Promise.withResolvers<RunEnd | null>();
    this.#waiting.set(id, resolve);
    return promise;
  }

  forget(id: string): void {
    this.#waiting.delete(id);
  }

  rollout({ id }: { readonly id: string }, news: RolloutNews): void {
    if (news.type !== 'ended') return;
    const { outcome, diagnostics, metrics = {}, agentMetadata = {} } = news;
    this.#waiting.get(id)?.({ outcome, diagnostics, metrics, agentMetadata });
    this.#waiting.delete(id);
  }

  /** Nothing more comes. */
  close(): void {
    for (const resolve of this.#waiting.values()) resolve(null);
    this.#waiting.clear();
  }
}
