/**
 * Where groups come from: those that an earlier round gave back, first; then the next rows of the dataset, without rows that were given up. It knows every
 * group that was taken and not settled, so that a position that is kept at any moment loses none.
 */
import { RolloutError } from '../core/errors.ts';
import { datasetBegin, Dataset, type DatasetPosition } from './dataset/dataset.ts';
import type { DatasetRow } from './dataset/dataset-row.ts';
import { datasetFingerprint } from './dataset/fingerprint.ts';
import type { GroupSeed, MemberRemains } from './group.ts';

/** Where to go on after a restart. JSON. */
export interface CollectorPosition {
  readonly dataset: DatasetPosition;
  readonly nextGroupIndex: number;
  /** Groups that were taken or given back and have no end: they are rolled out anew, first. */
  readonly open: readonly {
    readonly groupIndex: number;
    readonly rowIndex: number;
    readonly epoch: number;
    readonly rounds: number;
  }[];
  readonly givenUpRows: readonly number[];
  /** Of the rows and their order; null = it is not known. */
  readonly fingerprint: string | null;
}

export const collectorBegin: CollectorPosition = {
  dataset: datasetBegin,
  nextGroupIndex: 0,
  open: [],
  givenUpRows: [],
  fingerprint: null,
};

export interface GroupSourceOptions {
  readonly groupSize: number;
  /** null = the order of the file. */
  readonly shuffleSeed: number | null;
  /** null = without end. */
  readonly epochs: number | null;
  readonly from: CollectorPosition;
}

export class GroupSource {
  readonly #dataset: Dataset;
  readonly #groupSize: number;
  readonly #open = new Map<number, GroupSeed>();
  readonly #returned: GroupSeed[] = [];
  readonly #givenUp: Set<number>;
  readonly #losses = new Map<number, number>();
  readonly #fingerprint: string;
  #nextGroupIndex: number;

  /** `rows` is not empty. CONFIG_INVALID for a position of other rows, or of another order. */
  constructor(rows: readonly Omit<DatasetRow, 'epoch'>[], options: GroupSourceOptions) {
    const { from, groupSize, shuffleSeed, epochs } = options;
    this.#fingerprint = datasetFingerprint(rows, shuffleSeed);
    assertSameRows(from, this.#fingerprint);
    this.#dataset = new Dataset(rows, { shuffleSeed, epochs, from: from.dataset });
    this.#groupSize = groupSize;
    this.#nextGroupIndex = from.nextGroupIndex;
    this.#givenUp = new Set(from.givenUpRows);
    for (const { groupIndex, rowIndex, epoch, rounds } of from.open) {
      const row = rows.find((each) => each.rowIndex === rowIndex);
      if (row === undefined) continue;
      this.#returned.push(this.#seed({ ...row, epoch }, { groupIndex, rounds, remains: [] }));
    }
  }

  /** Groups that were given back and wait. */
  get returnedGroups(): number {
    return this.#returned.length;
  }

  get position(): CollectorPosition {
    const open = [...this.#open.values(), ...this.#returned];
    return {
      dataset: this.#dataset.position,
      nextGroupIndex: this.#nextGroupIndex,
      open: open.map(({ groupIndex, row, rounds }) => ({
        ...{ groupIndex, rounds, rowIndex: row.rowIndex, epoch: row.epoch },
      })),
      givenUpRows: [...this.#givenUp].sort((a, b) => a - b),
      fingerprint: this.#fingerprint,
    };
  }

  /** The next group; null = the dataset has ended, or no row of it is left. */
  take(): GroupSeed | null {
    const seed = this.#returned.shift() ?? this.#fresh();
    if (seed !== null) this.#open.set(seed.groupIndex, seed);
    return seed;
  }

  /** It was handed over or dropped: nobody asks for it again. */
  settle(seed: GroupSeed): void {
    this.#open.delete(seed.groupIndex);
  }

  /** It is to be served again, before anything new. */
  giveBack(seed: GroupSeed, remains: readonly MemberRemains[]): void {
    this.#open.delete(seed.groupIndex);
    this.#returned.push({ ...seed, remains, rounds: seed.rounds + 1 });
  }

  /** Its row is not drawn any more, in no epoch. */
  giveUp(seed: GroupSeed): void {
    this.settle(seed);
    this.#givenUp.add(seed.row.rowIndex);
  }

  /** How often groups of its row were lost, this time included. */
  countLoss(seed: GroupSeed): number {
    const losses = (this.#losses.get(seed.row.rowIndex) ?? 0) + 1;
    this.#losses.set(seed.row.rowIndex, losses);
    return losses;
  }

  #fresh(): GroupSeed | null {
    for (let skipped = 0; skipped <= this.#dataset.size; skipped += 1) {
      const row = this.#dataset.next();
      if (row === null) return null;
      if (this.#givenUp.has(row.rowIndex)) continue;
      const groupIndex = this.#nextGroupIndex;
      this.#nextGroupIndex += 1;
      return this.#seed(row, { groupIndex, rounds: 0, remains: [] });
    }
    return null;
  }

  #seed(
    row: DatasetRow,
    { groupIndex, ...rest }: Pick<GroupSeed, 'groupIndex' | 'rounds' | 'remains'>,
  ): GroupSeed {
    return { ...{ groupIndex, row, firstIndex: groupIndex * this.#groupSize }, ...rest };
  }
}

function assertSameRows({ fingerprint }: CollectorPosition, own: string): void {
  if (fingerprint === null || fingerprint === own) return;
  const message = 'The position is one of other rows, or of another order.';
  throw new RolloutError('CONFIG_INVALID', message, {
    ...{ phase: 'config', field: 'position' },
    remedy: 'Name the dataset, slice and shuffle_seed that it belongs to, or begin without it.',
  });
}
