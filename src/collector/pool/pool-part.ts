/** Some groups of a pool, to be ended without the others: the gate stays open, but nothing of theirs starts any more. */
import { RolloutError } from '../../core/errors.ts';
import type { AbortScope } from '../abort/abort-scope.ts';
import type { LiveGroup } from './live-group.ts';
import type { MemberRun } from './member-run.ts';

export class PoolPart implements AbortScope {
  readonly #groups: readonly LiveGroup[];
  readonly #placed: Promise<unknown>;
  #pending: number;

  constructor(groups: readonly LiveGroup[]) {
    this.#groups = groups;
    this.#pending = groups.length;
    this.#placed = Promise.all(
      groups.map(async ({ placed }) => {
        await placed;
        this.#pending -= 1;
      }),
    );
  }

  get groupIndexes(): readonly number[] {
    return this.#groups.map(({ seed }) => seed.groupIndex);
  }

  get pendingGroups(): number {
    return this.#pending;
  }

  get runs(): readonly MemberRun[] {
    return this.#groups.flatMap(({ runs }) => runs);
  }

  close(): void {
    for (const group of this.#groups) group.cut();
    for (const run of this.runs) if (run.state === 'waiting') run.stop(notWanted());
  }

  async idle(): Promise<void> {
    await this.#placed;
  }

  /** What is complete is scored and filtered as ever. */
  stopFinishing(): void {
    // Nothing to stop: it waits for places only.
  }
}

function notWanted(): RolloutError {
  return new RolloutError('CANCELLED', 'its group is not wanted any more', { phase: 'queue' });
}
