/**
 * Rows in the order of their epoch. Every epoch holds each row once; with `shuffle` the order follows from seed and epoch alone, so that a position of two
 * numbers is all that has to be kept to go on at the same row.
 */
import { shuffledOrder } from './shuffled-order.ts';
import type { DatasetRow } from './dataset-row.ts';

/** Where the next row is. */
export interface DatasetPosition {
  readonly epoch: number;
  /** Rows of the epoch that are behind it. */
  readonly offset: number;
}

export const datasetBegin: DatasetPosition = { epoch: 0, offset: 0 };

export interface DatasetOptions {
  /** null = the order of the file. */
  readonly shuffleSeed: number | null;
  /** null = without end. */
  readonly epochs: number | null;
  readonly from: DatasetPosition;
}

export class Dataset {
  readonly #rows: readonly Omit<DatasetRow, 'epoch'>[];
  readonly #options: DatasetOptions;
  #position: DatasetPosition;
  #order: readonly number[] | null = null;

  /** `rows` is not empty. */
  constructor(rows: readonly Omit<DatasetRow, 'epoch'>[], options: DatasetOptions) {
    this.#rows = rows;
    this.#options = options;
    this.#position = options.from;
  }

  get size(): number {
    return this.#rows.length;
  }

  get position(): DatasetPosition {
    return this.#position;
  }

  /** The next row; null = the last epoch is over. */
  next(): DatasetRow | null {
    if (this.#position.offset >= this.#rows.length) this.#turn();
    const { epoch, offset } = this.#position;
    if (this.#options.epochs !== null && epoch >= this.#options.epochs) return null;
    const row = this.#rows[this.#orderOf(epoch)[offset] ?? -1];
    if (row === undefined) return null;
    this.#position = { epoch, offset: offset + 1 };
    return { ...row, epoch };
  }

  #turn(): void {
    this.#position = { epoch: this.#position.epoch + 1, offset: 0 };
    this.#order = null;
  }

  #orderOf(epoch: number): readonly number[] {
    const { shuffleSeed } = this.#options;
    this.#order ??=
      shuffleSeed === null
        ? this.#rows.map((_, at) => at)
        : shuffledOrder(this.#rows.length, shuffleSeed + epoch);
    return this.#order;
  }
}
