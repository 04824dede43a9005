/** One row of the dataset, in the words of the rollout protocol. */
export interface DatasetRow {
  /** Line of the file, from 0; stable over epochs. */
  readonly rowIndex: number;
  readonly epoch: number;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly label: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}
