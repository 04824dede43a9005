/** A place of a group: what has happened to it, and what an attempt's end means for it. */
import { masked } from '../training-sample.ts';
import type { CausePolicy } from '../cause-policy.ts';
import type { MemberRemains } from '../group.ts';
import type { CollectedMember, MemberEnd } from '../member.ts';
import type { MemberRun } from './member-run.ts';

export type PlaceVerdict =
  | { readonly kind: 'done' }
  /** Another attempt. */
  | { readonly kind: 'refill' }
  /** Cut off by an abort. */
  | { readonly kind: 'cut' }
  /** The row is wrong: every attempt ends so. */
  | { readonly kind: 'give-up'; readonly why: string }
  /** No attempt is left. */
  | { readonly kind: 'lost'; readonly why: string };

export class MemberPlace {
  readonly memberIndex: number;
  #attempts = 0;
  #member: CollectedMember | null;
  #lastEnd: MemberEnd | null = null;
  #partial: MemberRemains['partial'];

  constructor(memberIndex: number, remains: MemberRemains | null, masksOld: boolean) {
    this.memberIndex = memberIndex;
    const old = remains?.member ?? null;
    this.#member = old !== null && masksOld ? withoutLoss(old) : old;
    const partial = remains?.partial ?? [];
    this.#partial = masksOld ? partial.map(masked) : partial;
  }

  get member(): CollectedMember | null {
    return this.#member;
  }

  get lastEnd(): MemberEnd | null {
    return this.#member?.end ?? this.#lastEnd;
  }

  /** What an earlier attempt had sampled when it was cut off. */
  get partial(): MemberRemains['partial'] {
    return this.#partial;
  }

  get remains(): MemberRemains {
    return { memberIndex: this.memberIndex, member: this.#member, partial: this.#partial };
  }

  get attempts(): number {
    return this.#attempts;
  }

  nextAttempt(): number {
    this.#attempts += 1;
    return this.#attempts;
  }

  /** Takes what a run came to; `end` null = the gate turned it away. */
  take(
    run: MemberRun,
    end: MemberEnd | null,
    rules: {
      readonly causes: CausePolicy;
      readonly maxAttempts: number;
      readonly isOpen: boolean;
    },
  ): PlaceVerdict {
    if (end === null) return { kind: 'cut' };
    this.#lastEnd = end;
    // What was cut off is never scored, whatever the policy says of its cause.
    const decision = end.status === 'aborted' ? 'refill' : rules.causes(end);
    if (decision === 'keep' || decision === 'mask' || decision === 'zero') {
      this.#member = this.#collected(run, end, decision);
      return { kind: 'done' };
    }
    if (decision === 'give-up') return { kind: 'give-up', why: end.cause ?? 'unknown' };
    if (end.status === 'aborted') this.#partial = end.samples;
    if (!rules.isOpen) return { kind: 'cut' };
    if (this.#attempts < rules.maxAttempts) return { kind: 'refill' };
    return { kind: 'lost', why: `${this.#attempts} attempts: ${end.cause ?? 'unknown'}` };
  }

  #collected(run: MemberRun, end: MemberEnd, decision: 'keep' | 'mask' | 'zero'): CollectedMember {
    const isMasked = decision === 'mask';
    return {
      ...{ request: run.request, end, isMasked, isRemoved: false, attempts: this.#attempts },
      reward: isMasked ? null : decision === 'zero' ? 0 : end.reward,
      durationMs: run.durationMs,
    };
  }
}

/** It was sampled by older weights: it stays in the batch and in the baseline. */
function withoutLoss(member: CollectedMember): CollectedMember {
  return { ...member, end: { ...member.end, samples: member.end.samples.map(masked) } };
}
