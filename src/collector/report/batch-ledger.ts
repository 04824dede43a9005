/** Keeps the account of a batch from what its driver and pool tell. */
import type { BatchReport } from '../batch.ts';
import type { CollectorEvent } from '../events.ts';
import type { DroppedGroup, GroupSeed } from '../group.ts';
import { LengthTally } from './length-tally.ts';

export class BatchLedger {
  readonly #lengths = new LengthTally();
  readonly #dropped: DroppedGroup[] = [];
  readonly #returned: BatchReport['returned'][number][] = [];
  readonly #losses: Record<string, number> = {};
  #groupsStarted = 0;
  #groupsKept = 0;
  #rolloutsStarted = 0;
  #rolloutsRefilled = 0;
  #collectMs = 0;

  note(event: CollectorEvent): void {
    switch (event.type) {
      case 'group:started':
        this.#groupsStarted += 1;
        break;
      case 'member:started':
        this.#rolloutsStarted += 1;
        break;
      case 'member:ended':
        this.#lengths.ended(event);
        break;
      case 'member:refilled':
        this.#rolloutsRefilled += 1;
        addOne(this.#losses, event.end.cause ?? event.end.status);
        break;
      case 'group:kept':
        this.#groupsKept += 1;
        for (const member of event.group.members) this.#lengths.kept(member);
        break;
      case 'group:dropped':
        this.#dropped.push(slim(event.group));
        break;
      case 'group:returned':
        this.#returned.push({ seed: withoutRemains(event.seed), as: event.as });
        break;
      case 'abort:started':
      case 'abort:ended':
      case 'batch:collected':
        break;
    }
  }

  full(collectMs: number): void {
    this.#collectMs = collectMs;
  }

  report(): BatchReport {
    const drops: Record<string, number> = {};
    for (const { reason, detail } of this.#dropped)
      addOne(drops, detail === null ? reason : `${reason}/${detail}`);
    return {
      ...{ groupsStarted: this.#groupsStarted, groupsKept: this.#groupsKept, drops },
      ...{ rolloutsStarted: this.#rolloutsStarted, rolloutsRefilled: this.#rolloutsRefilled },
      ...{ losses: { ...this.#losses }, dropped: [...this.#dropped] },
      ...{ returned: [...this.#returned], collectMs: this.#collectMs },
      lengthBias: this.#lengths.bias(),
    };
  }
}

/** A report outlives its batch: it does not hold on to tokens. */
function slim({ seed, ends, ...rest }: DroppedGroup): DroppedGroup {
  return {
    ...rest,
    seed: withoutRemains(seed),
    ends: ends.map((end) => end && { ...end, samples: [] }),
  };
}

function withoutRemains(seed: GroupSeed): GroupSeed {
  return seed.remains.length === 0 ? seed : { ...seed, remains: [] };
}

function addOne(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
