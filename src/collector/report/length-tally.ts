import type { CollectorEvent } from '../events.ts';
import type { CollectedMember, MemberEnd } from '../member.ts';
import { trainedLength } from '../training-sample.ts';
import type { LengthBias } from './length-bias.ts';

class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    this.#sum += value;
    this.#count += 1;
  }

  get count(): number {
    return this.#count;
  }

  get value(): number | null {
    return this.#count === 0 ? null : this.#sum / this.#count;
  }
}

/** Sums up lengths and durations of what was kept, came to its end, or was cut off. */
export class LengthTally {
  readonly #keptTokens = new Mean();
  readonly #keptMs = new Mean();
  readonly #endedTokens = new Mean();
  readonly #endedMs = new Mean();
  readonly #cutMs = new Mean();
  readonly #allMs = new Mean();

  ended(event: Extract<CollectorEvent, { type: 'member:ended' }>): void {
    const { end, durationMs, isLate } = event;
    // Lost attempts, and those that were stopped for a lost sibling, say nothing about the length of answers.
    if (end.status === 'failed' || (end.status === 'aborted' && !isLate)) return;
    this.#allMs.add(durationMs);
    if (end.status === 'aborted') {
      this.#cutMs.add(durationMs);
      return;
    }
    this.#endedTokens.add(tokensOf(end));
    this.#endedMs.add(durationMs);
  }

  kept({ end, durationMs }: CollectedMember): void {
    this.#keptTokens.add(tokensOf(end));
    this.#keptMs.add(durationMs);
  }

  bias(): LengthBias {
    const kept = this.#keptMs.value;
    const all = this.#allMs.value;
    return {
      ...{ keptTokens: this.#keptTokens.value, endedTokens: this.#endedTokens.value },
      ...{ keptMs: kept, endedMs: this.#endedMs.value },
      ...{ cutMembers: this.#cutMs.count, cutMeanMs: this.#cutMs.value },
      durationRatio: kept === null || all === null || all === 0 ? null : kept / all,
    };
  }
}

function tokensOf({ samples }: MemberEnd): number {
  return samples.reduce((sum, sample) => sum + trainedLength(sample), 0);
}
