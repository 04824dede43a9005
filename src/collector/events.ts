/** What drivers tell while they work. Observers change nothing and break nothing: what they throw is dropped. */
import type { AbortReason, AbortReceipt } from './abort/abort-receipt.ts';
import type { CollectedGroup, DroppedGroup, GroupSeed } from './group.ts';
import type { MemberEnd, MemberRequest } from './member.ts';

export type CollectorEvent =
  | { readonly type: 'group:started'; readonly seed: GroupSeed }
  | { readonly type: 'member:started'; readonly request: MemberRequest }
  | {
      readonly type: 'member:ended';
      readonly request: MemberRequest;
      readonly end: MemberEnd;
      readonly durationMs: number;
      /** An abort had begun. */
      readonly isLate: boolean;
    }
  /** The attempt was lost; its place gets another one. */
  | { readonly type: 'member:refilled'; readonly request: MemberRequest; readonly end: MemberEnd }
  | { readonly type: 'group:kept'; readonly group: CollectedGroup }
  | { readonly type: 'group:dropped'; readonly group: DroppedGroup }
  /** It will be started again, or handed over, by a later batch. */
  | {
      readonly type: 'group:returned';
      readonly seed: GroupSeed;
      readonly as: 'complete' | 'partial' | 'new';
    }
  | { readonly type: 'abort:started'; readonly reason: AbortReason; readonly live: number }
  | { readonly type: 'abort:ended'; readonly receipt: AbortReceipt }
  | { readonly type: 'batch:collected'; readonly groups: number };

export type CollectorObserver = (event: CollectorEvent) => void;
